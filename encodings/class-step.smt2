; One step on classes, <title>:
; the collective on all its kinds of groups at once, or not at all; classes in no group keep what they have.
;   <step>                 the instruction's name, as in step.smt2
;   <collective>, <m>      which collective, and how many classes are in a group
;   <joined>               the factors along which the groups' devices differ
;   <states>, <both>       the parameters "(a0 Class) ...", a class each, without and with "(b0 Class) ..." after it
;   <all-a>, <all-b>       all classes before and after, as arguments "a0 a1 ..." and "b0 b1 ..."
;   each kind: <a>, <b>    the classes of one kind of group before and after, the root's first, as arguments
;   each untouched: <z>    a class in no group
(define-fun class.needs.<step> (<states>) Bool (and true
  (class.<collective>.needs.<m> <joined> <a>)                                  ; each kind      [class.step.needs]
))
(define-fun class.gives.<step> (<both>) Bool (and true
  (class.<collective>.gives.<m> <joined> <a> <b>)                              ; each kind      [class.step.gives]
  (= b<z> a<z>)                                                                ; each untouched [class.step.untouched]
))
(define-fun class.step.<step> (<both>) Bool (and (class.needs.<step> <all-a>) (class.gives.<step> <all-a> <all-b>)))
