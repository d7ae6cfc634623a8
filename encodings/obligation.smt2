; The obligation of <title>: a concrete step implies the class step.
;   <title>, <step>                  the instruction in words, and its name as in step.smt2
;   <parameters>                     the states s and t, the classes a, b and c, turned and then, as parameters
;   <all-s>, <all-t>, <all-a>, <all-b>, <all-c>   the arguments "s0 s1 ..." and so on
;
; If s0 s1 ... are described by classes a0 a1 ..., the step leads to t0 t1 ..., and these are described by any classes
; c0 c1 ... at all, in the same numbering of the chunks unless it played no part before, then the class step can be
; taken and what it gives, b0 b1 ..., describes t0 t1 ... . This is its negation, to be refuted.
; (States that no classes describe do occur, where scatters don't line up, but the goal cannot be reached from them; a
; test tries them all.)
(define-fun counterexample.<step> (<parameters>) Bool (and
  (described <all-s> <all-a> turned)                                                       ; [obligation.before]
  (step.<step> <all-s> <all-t>)                                                            ; [obligation.step]
  (described <all-t> <all-c> then)                                                         ; [obligation.after]
  (or (= turned then) (whole <all-a>))                                                     ; [obligation.numbering]
  (class.gives.<step> <all-a> <all-b>)                                                     ; [obligation.class-gives]
  (not (and (class.needs.<step> <all-a>) (described <all-t> <all-b> then)))
))
