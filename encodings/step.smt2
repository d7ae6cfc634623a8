; One step, <title>:
; the collective on all its groups at once, or not at all; devices in no group keep what they have.
;   <step>                 the instruction's name: collective, joined factors from-to, "m" where only masters take part
;   <collective>, <m>      which collective, and how many devices are in a group
;   <states>, <both>       the parameters "(s0 State) ...", a device each, without and with "(t0 State) ..." after it
;   <all-s>, <all-t>       all devices' states before and after, as arguments "s0 s1 ..." and "t0 t1 ..."
;   each group: <s>, <t>   its devices' states before and after, in order, as arguments
;   each untouched: <d>    a device in no group
(define-fun needs.<step> (<states>) Bool (and true
  (<collective>.needs.<m> <s>)                                                 ; each group     [step.needs]
))
(define-fun gives.<step> (<both>) Bool (and true
  (<collective>.gives.<m> <s> <t>)                                             ; each group     [step.gives]
  (= t<d> s<d>)                                                                ; each untouched [step.untouched]
))
(define-fun step.<step> (<both>) Bool (and (needs.<step> <all-s>) (gives.<step> <all-s> <all-t>)))
