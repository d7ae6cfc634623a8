; Do these three instructions make a program of at most three steps on 2 x 2 devices?
(set-option :produce-models true)
(set-logic QF_BV)
; States: what a device holds (the model, section 5).
;
; A state is a Boolean matrix of 4 chunks (rows) and 4 contributors (columns), laid out as one bit-vector, chunk by
; chunk: bit chunk * 4 + contributor says that the chunk is held with that contribution in it.

; The sorts that follow, with nothing held, nobody's contribution, and the numbers 0 and 1.
(define-sort State () (_ BitVec 16))
(define-sort Contributors () (_ BitVec 4))
(define-sort Number () (_ BitVec 5))
(define-fun nothing () State (_ bv0 16))
(define-fun nobody () Contributors (_ bv0 4))
(define-fun zero () Number (_ bv0 5))
(define-fun one () Number (_ bv1 5))

; The row of a chunk is the set of contributors in it, and a chunk is held where its row is not empty.
(define-fun row0 ((s State)) Contributors ((_ extract 3 0) s))
(define-fun row1 ((s State)) Contributors ((_ extract 7 4) s))
(define-fun row2 ((s State)) Contributors ((_ extract 11 8) s))
(define-fun row3 ((s State)) Contributors ((_ extract 15 12) s))
(define-fun holds0 ((s State)) Bool (not (= (row0 s) nobody)))
(define-fun holds1 ((s State)) Bool (not (= (row1 s) nobody)))
(define-fun holds2 ((s State)) Bool (not (= (row2 s) nobody)))
(define-fun holds3 ((s State)) Bool (not (= (row3 s) nobody)))

; `before-c` is the number of chunks held among those before chunk c, and `count` that of all.
(define-fun before0 ((s State)) Number zero)
(define-fun before1 ((s State)) Number (bvadd (before0 s) (ite (holds0 s) one zero)))
(define-fun before2 ((s State)) Number (bvadd (before1 s) (ite (holds1 s) one zero)))
(define-fun before3 ((s State)) Number (bvadd (before2 s) (ite (holds2 s) one zero)))
(define-fun before4 ((s State)) Number (bvadd (before3 s) (ite (holds3 s) one zero)))
(define-fun count ((s State)) Number (before4 s))

; Two devices hold the same chunks, whoever contributed.
(define-fun equal-rows ((s State) (t State)) Bool (and
  (= (holds0 s) (holds0 t))
  (= (holds1 s) (holds1 t))
  (= (holds2 s) (holds2 t))
  (= (holds3 s) (holds3 t))
))

; No chunk is held by both.
(define-fun disjoint-rows ((s State) (t State)) Bool (and
  (not (and (holds0 s) (holds0 t)))
  (not (and (holds1 s) (holds1 t)))
  (not (and (holds2 s) (holds2 t)))
  (not (and (holds3 s) (holds3 t)))
))

; Chunk by chunk, no contribution is in both.
(define-fun disjoint ((s State) (t State)) Bool (= (bvand s t) nothing))

; Everything that is in s is in t.
(define-fun within ((s State) (t State)) Bool (= (bvor s t) t))

; t is the j-th of m equal parts of s: of the n chunks held, in order, those numbered from j n / m to (j + 1) n / m.
(define-fun in-part ((earlier Number) (n Number) (j Number) (m Number)) Bool (and
  (bvule (bvmul j n) (bvmul earlier m))  ; [part.from-its-start]
  (bvult (bvmul earlier m) (bvmul (bvadd j one) n))  ; [part.to-its-end]
))
(define-fun is-part ((t State) (s State) (j Number) (m Number)) Bool (and
  (= (row0 t) (ite (in-part (before0 s) (count s) j m) (row0 s) nobody))
  (= (row1 t) (ite (in-part (before1 s) (count s) j m) (row1 s) nobody))
  (= (row2 t) (ite (in-part (before2 s) (count s) j m) (row2 s) nobody))
  (= (row3 t) (ite (in-part (before3 s) (count s) j m) (row3 s) nobody))
))

; The five collectives on one group of 2 devices (the model, section 5): what they need before, s0 s1 ..., and what
; they give after, t0 t1 ..., in the group's order; s0 and t0 are the root's.

; The sum of a group has what any member has.
(define-fun sum.2 ((s0 State) (s1 State)) State
  (bvor s0
  (bvor s1
  nothing
  )
  )
)

; AllReduce needs equal, non-empty rows and row by row disjoint contributors, and gives everyone the sum.
(define-fun AllReduce.needs.2 ((s0 State) (s1 State)) Bool (and
  (not (= s0 nothing))  ; [AllReduce.non-empty]
  (equal-rows s0 s1)  ; [AllReduce.equal-rows]
  (disjoint s0 s1)  ; [AllReduce.disjoint]
))
(define-fun AllReduce.gives.2 ((s0 State) (s1 State) (t0 State) (t1 State)) Bool (and
  (= t0 (sum.2 s0 s1))  ; [AllReduce.sum]
  (= t1 (sum.2 s0 s1))  ; [AllReduce.sum]
))

; ReduceScatter needs the same, and that m divides the number of rows, and gives the j-th member the j-th m-th of the
; sum.
(define-fun ReduceScatter.needs.2 ((s0 State) (s1 State)) Bool (and
  (not (= s0 nothing))  ; [ReduceScatter.non-empty]
  (equal-rows s0 s1)  ; [ReduceScatter.equal-rows]
  (disjoint s0 s1)  ; [ReduceScatter.disjoint]
  (= (bvurem (count s0) #b00010) zero)  ; [ReduceScatter.divides]
))
(define-fun ReduceScatter.gives.2 ((s0 State) (s1 State) (t0 State) (t1 State)) Bool (and
  (is-part t0 (sum.2 s0 s1) #b00000 #b00010)  ; [ReduceScatter.part]
  (is-part t1 (sum.2 s0 s1) #b00001 #b00010)  ; [ReduceScatter.part]
))

; Reduce needs what AllReduce does, and gives the root the sum and the others nothing.
(define-fun Reduce.needs.2 ((s0 State) (s1 State)) Bool (and
  (not (= s0 nothing))  ; [Reduce.non-empty]
  (equal-rows s0 s1)  ; [Reduce.equal-rows]
  (disjoint s0 s1)  ; [Reduce.disjoint]
))
(define-fun Reduce.gives.2 ((s0 State) (s1 State) (t0 State) (t1 State)) Bool (and
  (= t0 (sum.2 s0 s1))  ; [Reduce.sum]
  (= t1 nothing)  ; [Reduce.empties]
))

; AllGather needs non-empty states, the same number of rows each and no row held twice, and gives everyone the union.
(define-fun AllGather.needs.2 ((s0 State) (s1 State)) Bool (and
  (not (= s0 nothing))  ; [AllGather.non-empty]
  (= (count s0) (count s1))  ; [AllGather.equal-counts]
  (disjoint-rows s0 s1)  ; [AllGather.disjoint-rows]
))
(define-fun AllGather.gives.2 ((s0 State) (s1 State) (t0 State) (t1 State)) Bool (and
  (= t0 (sum.2 s0 s1))  ; [AllGather.union]
  (= t1 (sum.2 s0 s1))  ; [AllGather.union]
))

; Broadcast needs that every member has no more than the root and some member less, and gives everyone the root's state.
; (So the root is not empty: some member has less.)
(define-fun Broadcast.needs.2 ((s0 State) (s1 State)) Bool (and
  (within s1 s0)  ; [Broadcast.no-more]
  (not (= s0 s1))  ; [Broadcast.some-less]
))
(define-fun Broadcast.gives.2 ((s0 State) (s1 State) (t0 State) (t1 State)) Bool (and
  (= t0 s0)  ; [Broadcast.root]
  (= t1 s0)  ; [Broadcast.root]
))

; One step, ReduceScatter along factor 1:
; the collective on all its groups at once, or not at all; devices in no group keep what they have.
(define-fun needs.ReduceScatter.1-2 ((s0 State) (s1 State) (s2 State) (s3 State)) Bool (and true
  (ReduceScatter.needs.2 s0 s1)  ; [step.needs]
  (ReduceScatter.needs.2 s2 s3)  ; [step.needs]
))
(define-fun gives.ReduceScatter.1-2 ((s0 State) (s1 State) (s2 State) (s3 State) (t0 State) (t1 State) (t2 State) (t3 State)) Bool (and true
  (ReduceScatter.gives.2 s0 s1 t0 t1)  ; [step.gives]
  (ReduceScatter.gives.2 s2 s3 t2 t3)  ; [step.gives]
))
(define-fun step.ReduceScatter.1-2 ((s0 State) (s1 State) (s2 State) (s3 State) (t0 State) (t1 State) (t2 State) (t3 State)) Bool (and (needs.ReduceScatter.1-2 s0 s1 s2 s3) (gives.ReduceScatter.1-2 s0 s1 s2 s3 t0 t1 t2 t3)))

; One step, AllReduce along factor 0:
; the collective on all its groups at once, or not at all; devices in no group keep what they have.
(define-fun needs.AllReduce.0-1 ((s0 State) (s1 State) (s2 State) (s3 State)) Bool (and true
  (AllReduce.needs.2 s0 s2)  ; [step.needs]
  (AllReduce.needs.2 s1 s3)  ; [step.needs]
))
(define-fun gives.AllReduce.0-1 ((s0 State) (s1 State) (s2 State) (s3 State) (t0 State) (t1 State) (t2 State) (t3 State)) Bool (and true
  (AllReduce.gives.2 s0 s2 t0 t2)  ; [step.gives]
  (AllReduce.gives.2 s1 s3 t1 t3)  ; [step.gives]
))
(define-fun step.AllReduce.0-1 ((s0 State) (s1 State) (s2 State) (s3 State) (t0 State) (t1 State) (t2 State) (t3 State)) Bool (and (needs.AllReduce.0-1 s0 s1 s2 s3) (gives.AllReduce.0-1 s0 s1 s2 s3 t0 t1 t2 t3)))

; One step, AllGather along factor 1:
; the collective on all its groups at once, or not at all; devices in no group keep what they have.
(define-fun needs.AllGather.1-2 ((s0 State) (s1 State) (s2 State) (s3 State)) Bool (and true
  (AllGather.needs.2 s0 s1)  ; [step.needs]
  (AllGather.needs.2 s2 s3)  ; [step.needs]
))
(define-fun gives.AllGather.1-2 ((s0 State) (s1 State) (s2 State) (s3 State) (t0 State) (t1 State) (t2 State) (t3 State)) Bool (and true
  (AllGather.gives.2 s0 s1 t0 t1)  ; [step.gives]
  (AllGather.gives.2 s2 s3 t2 t3)  ; [step.gives]
))
(define-fun step.AllGather.1-2 ((s0 State) (s1 State) (s2 State) (s3 State) (t0 State) (t1 State) (t2 State) (t3 State)) Bool (and (needs.AllGather.1-2 s0 s1 s2 s3) (gives.AllGather.1-2 s0 s1 s2 s3 t0 t1 t2 t3)))
; Where a reduction starts and what it must reach (the model, section 5).

; At the start every device holds its own contribution to every chunk; for an AllGather to its own chunk only, and for a
; Broadcast device 0 does and the others hold nothing.
(define-fun start ((s0 State) (s1 State) (s2 State) (s3 State)) Bool (and
  (= (row0 s0) #b0001)  ; [start]
  (= (row1 s0) #b0001)  ; [start]
  (= (row2 s0) #b0001)  ; [start]
  (= (row3 s0) #b0001)  ; [start]
  (= (row0 s1) #b0010)  ; [start]
  (= (row1 s1) #b0010)  ; [start]
  (= (row2 s1) #b0010)  ; [start]
  (= (row3 s1) #b0010)  ; [start]
  (= (row0 s2) #b0100)  ; [start]
  (= (row1 s2) #b0100)  ; [start]
  (= (row2 s2) #b0100)  ; [start]
  (= (row3 s2) #b0100)  ; [start]
  (= (row0 s3) #b1000)  ; [start]
  (= (row1 s3) #b1000)  ; [start]
  (= (row2 s3) #b1000)  ; [start]
  (= (row3 s3) #b1000)  ; [start]
))

; The goal: every device holds every chunk, with every contribution of its replica; for a Reduce device 0 does, for an
; AllGather every chunk has its own device's contribution, and for a Broadcast that of device 0.
(define-fun goal ((s0 State) (s1 State) (s2 State) (s3 State)) Bool (and
  (= (row0 s0) #b1111)  ; [goal]
  (= (row1 s0) #b1111)  ; [goal]
  (= (row2 s0) #b1111)  ; [goal]
  (= (row3 s0) #b1111)  ; [goal]
  (= (row0 s1) #b1111)  ; [goal]
  (= (row1 s1) #b1111)  ; [goal]
  (= (row2 s1) #b1111)  ; [goal]
  (= (row3 s1) #b1111)  ; [goal]
  (= (row0 s2) #b1111)  ; [goal]
  (= (row1 s2) #b1111)  ; [goal]
  (= (row2 s2) #b1111)  ; [goal]
  (= (row3 s2) #b1111)  ; [goal]
  (= (row0 s3) #b1111)  ; [goal]
  (= (row1 s3) #b1111)  ; [goal]
  (= (row2 s3) #b1111)  ; [goal]
  (= (row3 s3) #b1111)  ; [goal]
))
; A program of at most 3 steps that reaches the goal and costs less than a bound (the model, sections 4 to 6).
;
; A step of the program is the number of an instruction, or idle. It costs at least what each price row says: where that
; instruction runs and its groups hold so much, so many nanoseconds. The sum of the steps' costs is less than the bound.
; It is written once for states of devices and for those of classes.
; Instructions are numbered, and costs are whole nanoseconds.
(define-sort Instruction () (_ BitVec 2))
(define-sort Cost () (_ BitVec 2))

; A step runs one instruction of the set; it is idle exactly where the goal holds, and then changes nothing.
(define-fun move ((i Instruction) (s0 State) (s1 State) (s2 State) (s3 State) (t0 State) (t1 State) (t2 State) (t3 State)) Bool (and
  (bvule i #b11)  ; [program.known]
  (=> (= i #b00) (step.ReduceScatter.1-2 s0 s1 s2 s3 t0 t1 t2 t3))  ; [program.runs]
  (=> (= i #b01) (step.AllReduce.0-1 s0 s1 s2 s3 t0 t1 t2 t3))  ; [program.runs]
  (=> (= i #b10) (step.AllGather.1-2 s0 s1 s2 s3 t0 t1 t2 t3))  ; [program.runs]
  (= (= i #b11) (goal s0 s1 s2 s3))  ; [program.idle-at-goal]
  (=> (= i #b11) (= t0 s0))  ; [program.idle-keeps]
  (=> (= i #b11) (= t1 s1))  ; [program.idle-keeps]
  (=> (= i #b11) (= t2 s2))  ; [program.idle-keeps]
  (=> (= i #b11) (= t3 s3))  ; [program.idle-keeps]
))

; A step costs at least what every row says that applies to it.
(define-fun charged ((i Instruction) (cost Cost) (s0 State) (s1 State) (s2 State) (s3 State)) Bool (and true true
))

; From the start to the goal: a state after every step, each step a move that is charged; no blocked prefix.
(declare-const s0.0 State)
(declare-const s1.0 State)
(declare-const s2.0 State)
(declare-const s3.0 State)
(declare-const s0.1 State)
(declare-const s1.1 State)
(declare-const s2.1 State)
(declare-const s3.1 State)
(declare-const s0.2 State)
(declare-const s1.2 State)
(declare-const s2.2 State)
(declare-const s3.2 State)
(declare-const s0.3 State)
(declare-const s1.3 State)
(declare-const s2.3 State)
(declare-const s3.3 State)
(declare-const instruction.1 Instruction)
(declare-const instruction.2 Instruction)
(declare-const instruction.3 Instruction)
(declare-const cost.1 Cost)
(declare-const cost.2 Cost)
(declare-const cost.3 Cost)
(assert (start s0.0 s1.0 s2.0 s3.0))
(assert (move instruction.1 s0.0 s1.0 s2.0 s3.0 s0.1 s1.1 s2.1 s3.1))
(assert (move instruction.2 s0.1 s1.1 s2.1 s3.1 s0.2 s1.2 s2.2 s3.2))
(assert (move instruction.3 s0.2 s1.2 s2.2 s3.2 s0.3 s1.3 s2.3 s3.3))
(assert (charged instruction.1 cost.1 s0.0 s1.0 s2.0 s3.0))
(assert (charged instruction.2 cost.2 s0.1 s1.1 s2.1 s3.1))
(assert (charged instruction.3 cost.3 s0.2 s1.2 s2.2 s3.2))
(assert (goal s0.3 s1.3 s2.3 s3.3))

; No step costs as much as the bound, and neither does their sum.
(assert (bvult cost.1 #b01))
(assert (bvult cost.2 #b01))
(assert (bvult cost.3 #b01))
(assert (bvult
  (bvadd cost.1
  (bvadd cost.2
  (bvadd cost.3
  #b00
  )
  )
  )
  #b01))
(set-info :status sat)
(check-sat)
