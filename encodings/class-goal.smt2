; Where a reduction starts and what it must reach, for classes (the model, section 5).
;   <states>          the parameters "(a0 Class) (a1 Class) ...", a class each
;   <reduced>         the factors that the reduction runs over
;   each class: <z>   a class of devices

; At the start every class holds all rows, with its own contribution.
(define-fun start (<states>) Bool (and
  (= a<z> (class every none))                                                                 ; each class [class.start]
))

; The goal: every class holds all rows, with all contributors along the factors that the reduction runs over.
(define-fun goal (<states>) Bool (and
  (= a<z> (class every <reduced>))                                                            ; each class [class.goal]
))
