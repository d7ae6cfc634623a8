; Where a reduction starts and what it must reach, for classes (the model, section 5).
;   <states>                  the parameters "(a0 Class) (a1 Class) ...", a class each
;   <summed>, <whole>         the factors along which contributors, and rows, must be complete at the end
;   each class: <z>, <start>  a class of devices, and what it holds at the start
;   each wanted: <z>          a class that matters at the end

; At the start every class holds all rows, with its own contribution; for an AllGather its own rows, with contributors
; that count as complete, and for a Broadcast device 0 alone holds anything, which counts as complete.
(define-fun start (<states>) Bool (and
  (= a<z> <start>)                                                                            ; each class [class.start]
))

; The goal: contributors are complete along the factors that the reduction runs over and no others, and rows along those
; that it does not end split over; for a Reduce only device 0 matters.
(define-fun goal (<states>) Bool (and true true
  (= (all-from a<z>) <summed>)                                                ; each wanted [class.goal-contributors]
  (subset <whole> (all-rows a<z>))                                            ; each wanted [class.goal-rows]
))
