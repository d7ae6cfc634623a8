; A program of at most <steps> steps that reaches the goal and costs less than a bound (the model, sections 4 to 6).
;
; A step of the program is the number of an instruction, or idle. It costs at least what each price row says: where that
; instruction runs and its groups hold so much, so many nanoseconds. The sum of the steps' costs is less than the bound.
; It is written once for states of devices and for those of classes.
;   <sort>, <relation>                   State and step, or Class and class.step
;   <states>, <both>                     the parameters of a state, and of the states before and after a step
;   <before>, <after>                    the same as arguments
;   <code>, <idle>                       bits of an instruction's number; the number that stands for idle
;   <price>, <bound>, <nothing>          bits of a cost (no sum overflows); the bound; no cost
;   each place: <was>, <is>              a device or class before and after a step
;   each instruction: <number>, <step>   an instruction of the set
;   each row: <number>, <held>, <least>  a price row: the instruction, what its groups hold, its price in nanoseconds
;   each variable: <name>                what a device or class holds after a step, step 0 being the start
;   each time: <at>, <was>, <now>        a step from 1; the arguments before and after it
;   <first>, <last>                      the arguments at the start and after the last step
;   each blocked: <prefix>               a sequence of instructions that no program may begin with
; Instructions are numbered, and costs are whole nanoseconds.
(define-sort Instruction () (_ BitVec <code>))
(define-sort Cost () (_ BitVec <price>))

; A step runs one instruction of the set; it is idle exactly where the goal holds, and then changes nothing.
(define-fun move ((i Instruction) <both>) Bool (and
  (bvule i <idle>)                                                                            ; [program.known]
  (=> (= i <number>) (<relation>.<step> <before> <after>))                             ; each instruction [program.runs]
  (= (= i <idle>) (goal <before>))                                                            ; [program.idle-at-goal]
  (=> (= i <idle>) (= <is> <was>))                                                     ; each place [program.idle-keeps]
))

; A step costs at least what every row says that applies to it.
(define-fun charged ((i Instruction) (cost Cost) <states>) Bool (and true true
  (=> (and (= i <number>) <held>) (bvuge cost <least>))                                       ; each row [program.price]
))

; From the start to the goal: a state after every step, each step a move that is charged; no blocked prefix.
(declare-const <name> <sort>)                                                                 ; each variable
(declare-const instruction.<at> Instruction)                                                  ; each time
(declare-const cost.<at> Cost)                                                                ; each time
(assert (start <first>))
(assert (move instruction.<at> <was> <now>))                                                  ; each time
(assert (charged instruction.<at> cost.<at> <was>))                                           ; each time
(assert (goal <last>))
(assert (not (and true <prefix>)))                                                            ; each blocked

; No step costs as much as the bound, and neither does their sum.
(assert (bvult cost.<at> <bound>))                                                            ; each time
(assert (bvult
  (bvadd cost.<at>                                                                            ; each time
  <nothing>
  )                                                                                           ; each time
  <bound>))
