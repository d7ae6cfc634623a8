; Where a reduction starts and what it must reach (the model, section 5).
;   <states>                             the parameters "(s0 State) (s1 State) ...", a device each
;   each start: <d>, <c>, <from>         a device and a chunk, and whose contribution it holds of it at the start
;   each wanted: <d>, <c>, <from>        a device that matters and a chunk, and whose contributions it must hold of it

; At the start every device holds its own contribution to every chunk; for an AllGather to its own chunk only, and for a
; Broadcast device 0 does and the others hold nothing.
(define-fun start (<states>) Bool (and
  (= (row<c> s<d>) <from>)                                                                    ; each start [start]
))

; The goal: every device holds every chunk, with every contribution of its replica; for a Reduce device 0 does, for an
; AllGather every chunk has its own device's contribution, and for a Broadcast that of device 0.
(define-fun goal (<states>) Bool (and
  (= (row<c> s<d>) <from>)                                                                    ; each wanted [goal]
))
