; A program of at most <steps> steps that reaches the goal and costs less than a bound (the model, sections 4 to 6).
;
; A step of the program is an instruction's number, or idle. Its cost is at least what each price row says: where that
; instruction runs and its groups hold so many chunks, so much. The sum of the costs is less than the bound.
;   <states>, <both>, <all-s>, <all-t>   parameters and arguments: s0 s1 ... before a step, t0 t1 ... after, a device each
;   <code>, <idle>                       bits of an instruction's number; the number that stands for idle
;   <price>, <bound>                     bits of a cost (none overflows); the bound in nanoseconds
;   each device: <d>, <own>, <goal>      a device; its own contribution; the contributors of its replica
;   each instruction: <number>, <step>   an instruction of the set
;   each row: <number>, <held>, <least>  a price row: instruction, what its groups hold, its price in nanoseconds
;   each blocked: <prefix>               a prefix that is excluded
;   each time: <at>, <was>, <now>        a step from 1; the arguments before and after it; <d> and <at> name one state
(define-sort Instruction () (_ BitVec <code>))
(define-sort Cost () (_ BitVec <price>))

; At the start every device holds every chunk with its own contribution only.
(define-fun start (<states>) Bool (and
  (all-chunks-from s<d> <own>)                                                               ; each device [start]
))

; The goal: every device holds every chunk with every contribution of its replica.
(define-fun goal (<states>) Bool (and
  (all-chunks-from s<d> <goal>)                                                              ; each device [goal]
))

; A step runs one instruction of the set; it is idle exactly where the goal holds, and then changes nothing.
(define-fun move ((i Instruction) <both>) Bool (and
  (bvule i <idle>)                                                                                ; [program.known]
  (=> (= i <number>) (step.<step> <all-s> <all-t>))                                     ; each instruction [program.runs]
  (= (= i <idle>) (goal <all-s>))                                                                 ; [program.idle-at-goal]
  (=> (= i <idle>) (= t<d> s<d>))                                                       ; each device [program.idle-keeps]
))

; A step costs at least what every row says that applies to it.
(define-fun charged ((i Instruction) (cost Cost) <states>) Bool (and true true
  (=> (and (= i <number>) <held>) (bvuge cost <least>))                                           ; each row [program.price]
))

(declare-const s<d>.<at> State)                                                                            ; each state
(declare-const instruction.<at> Instruction)                                                                      ; each time
(declare-const cost.<at> Cost)                                                                             ; each time
(assert (start <first>))
(assert (move instruction.<at> <was> <now>))                                                                      ; each time
(assert (charged instruction.<at> cost.<at> <was>))                                                               ; each time
(assert (goal <last>))                                                                                     ; [program.ends]
(assert (not (and true <prefix>)))                                                                         ; each blocked

; No step costs as much as the bound, and neither does their sum.
(assert (bvult cost.<at> <bound>))                                                                         ; each time
(assert (bvult
  (bvadd cost.<at>                                                                                         ; each time
  <nothing>
  )                                                                                                        ; each time
  <bound>))
