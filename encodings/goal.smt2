; Where a reduction starts and what it must reach (the model, section 5).
;   <states>                             the parameters "(s0 State) (s1 State) ...", a device each
;   each device: <d>, <own>, <replica>   a device; its own contribution; the contributors of its replica

; At the start every device holds every chunk with its own contribution only.
(define-fun start (<states>) Bool (and
  (all-chunks-from s<d> <own>)                                                                ; each device [start]
))

; The goal: every device holds every chunk, with every contribution of its replica.
(define-fun goal (<states>) Bool (and
  (all-chunks-from s<d> <replica>)                                                            ; each device [goal]
))
