; Do these three instructions make a program of at most three steps, by the classes of two factors?
(set-option :produce-models true)
(set-logic QF_BV)
; Class states: what the devices hold whose digits are zero in the same factors. They behave alike, so that one state
; per class stands for all of them, whatever the factors' sizes.
;
; Along each of the 2 factors such a device holds its own rows or all rows, with its own contributors or all.

; The sorts that follow, what a class state says, and sets of factors that are within another or have nothing in common.
(define-sort Factors () (_ BitVec 2))
(define-sort Class () (_ BitVec 5))
(define-fun none () Factors (_ bv0 2))
(define-fun every () Factors (bvnot none))
(define-fun empty () Class (_ bv0 5))
(define-fun held ((a Class)) Bool (= ((_ extract 4 4) a) #b1))
(define-fun all-rows ((a Class)) Factors ((_ extract 3 2) a))
(define-fun all-from ((a Class)) Factors ((_ extract 1 0) a))
(define-fun class ((rows Factors) (from Factors)) Class (concat #b1 (concat rows from)))
(define-fun subset ((x Factors) (y Factors)) Bool (= (bvor x y) y))
(define-fun apart ((x Factors) (y Factors)) Bool (= (bvand x y) none))

; Where nothing is held there are no rows and no contributors to speak of.
(define-fun proper ((a Class)) Bool (or (held a) (= a empty)))

; The five collectives on a group that takes in 2 classes of devices: what they need before, a0 a1 ..., and what they
; give after, b0 b1 ..., the root's class first. `joined` is the set of the factors along which the group's devices
; differ.

; AllReduce needs members alike, with all rows along the joined factors and their own contributors along these, and
; gives everyone all contributors along these. (So they hold something: where nothing is held there are no rows.)
(define-fun class.AllReduce.needs.2 ((joined Factors) (a0 Class) (a1 Class)) Bool (and
  (= a1 a0)  ; [class.AllReduce.alike]
  (subset joined (all-rows a0))  ; [class.AllReduce.rows]
  (apart joined (all-from a0))  ; [class.AllReduce.contributors]
))
(define-fun class.AllReduce.gives.2 ((joined Factors) (a0 Class) (a1 Class) (b0 Class) (b1 Class)) Bool (and
  (= b0 (class (all-rows a0) (bvor (all-from a0) joined)))  ; [class.AllReduce.sum]
  (= b1 (class (all-rows a0) (bvor (all-from a0) joined)))  ; [class.AllReduce.sum]
))

; ReduceScatter needs the same, and leaves everyone its own rows along the joined factors, with all contributors along
; these.
(define-fun class.ReduceScatter.needs.2 ((joined Factors) (a0 Class) (a1 Class)) Bool (and
  (= a1 a0)  ; [class.ReduceScatter.alike]
  (subset joined (all-rows a0))  ; [class.ReduceScatter.rows]
  (apart joined (all-from a0))  ; [class.ReduceScatter.contributors]
))
(define-fun parted.2 ((joined Factors) (a0 Class)) Class
  (class (bvand (all-rows a0) (bvnot joined)) (bvor (all-from a0) joined)))
(define-fun class.ReduceScatter.gives.2 ((joined Factors) (a0 Class) (a1 Class) (b0 Class) (b1 Class)) Bool (and
  (= b0 (parted.2 joined a0))  ; [class.ReduceScatter.part]
  (= b1 (parted.2 joined a0))  ; [class.ReduceScatter.part]
))

; Reduce needs the same, and gives the root all contributors along the joined factors, and the others nothing.
(define-fun class.Reduce.needs.2 ((joined Factors) (a0 Class) (a1 Class)) Bool (and
  (= a1 a0)  ; [class.Reduce.alike]
  (subset joined (all-rows a0))  ; [class.Reduce.rows]
  (apart joined (all-from a0))  ; [class.Reduce.contributors]
))
(define-fun class.Reduce.gives.2 ((joined Factors) (a0 Class) (a1 Class) (b0 Class) (b1 Class)) Bool (and
  (= b0 (class (all-rows a0) (bvor (all-from a0) joined)))  ; [class.Reduce.sum]
  (= b1 empty)  ; [class.Reduce.empties]
))

; AllGather needs members alike that hold something and their own rows along the joined factors, and gives everyone all
; rows along these.
(define-fun class.AllGather.needs.2 ((joined Factors) (a0 Class) (a1 Class)) Bool (and
  (held a0)  ; [class.AllGather.held]
  (= a1 a0)  ; [class.AllGather.alike]
  (apart joined (all-rows a0))  ; [class.AllGather.rows]
))
(define-fun class.AllGather.gives.2 ((joined Factors) (a0 Class) (a1 Class) (b0 Class) (b1 Class)) Bool (and
  (= b0 (class (bvor (all-rows a0) joined) (all-from a0)))  ; [class.AllGather.union]
  (= b1 (class (bvor (all-rows a0) joined) (all-from a0)))  ; [class.AllGather.union]
))

; Broadcast needs a root with all rows and all contributors along the joined factors, of which every member has no more
; and some member less, and gives everyone what the root holds.
(define-fun class.Broadcast.needs.2 ((joined Factors) (a0 Class) (a1 Class)) Bool (and
  (subset joined (all-rows a0))  ; [class.Broadcast.rows]
  (subset joined (all-from a0))  ; [class.Broadcast.contributors]
  (= (bvor a1 a0) a0)  ; [class.Broadcast.no-more]
  (not (= a0 a1))  ; [class.Broadcast.some-less]
))
(define-fun class.Broadcast.gives.2 ((joined Factors) (a0 Class) (a1 Class) (b0 Class) (b1 Class)) Bool (and
  (= b0 a0)  ; [class.Broadcast.root]
  (= b1 a0)  ; [class.Broadcast.root]
))

; One step on classes, ReduceScatter along factor 1:
; the collective on all its kinds of groups at once, or not at all; classes in no group keep what they have.
(define-fun class.needs.ReduceScatter.1-2 ((a0 Class) (a1 Class) (a2 Class) (a3 Class)) Bool (and true
  (class.ReduceScatter.needs.2 #b10 a0 a2)  ; [class.step.needs]
  (class.ReduceScatter.needs.2 #b10 a1 a3)  ; [class.step.needs]
))
(define-fun class.gives.ReduceScatter.1-2 ((a0 Class) (a1 Class) (a2 Class) (a3 Class) (b0 Class) (b1 Class) (b2 Class) (b3 Class)) Bool (and true
  (class.ReduceScatter.gives.2 #b10 a0 a2 b0 b2)  ; [class.step.gives]
  (class.ReduceScatter.gives.2 #b10 a1 a3 b1 b3)  ; [class.step.gives]
))
(define-fun class.step.ReduceScatter.1-2 ((a0 Class) (a1 Class) (a2 Class) (a3 Class) (b0 Class) (b1 Class) (b2 Class) (b3 Class)) Bool (and (class.needs.ReduceScatter.1-2 a0 a1 a2 a3) (class.gives.ReduceScatter.1-2 a0 a1 a2 a3 b0 b1 b2 b3)))

; One step on classes, AllReduce along factor 0:
; the collective on all its kinds of groups at once, or not at all; classes in no group keep what they have.
(define-fun class.needs.AllReduce.0-1 ((a0 Class) (a1 Class) (a2 Class) (a3 Class)) Bool (and true
  (class.AllReduce.needs.2 #b01 a0 a1)  ; [class.step.needs]
  (class.AllReduce.needs.2 #b01 a2 a3)  ; [class.step.needs]
))
(define-fun class.gives.AllReduce.0-1 ((a0 Class) (a1 Class) (a2 Class) (a3 Class) (b0 Class) (b1 Class) (b2 Class) (b3 Class)) Bool (and true
  (class.AllReduce.gives.2 #b01 a0 a1 b0 b1)  ; [class.step.gives]
  (class.AllReduce.gives.2 #b01 a2 a3 b2 b3)  ; [class.step.gives]
))
(define-fun class.step.AllReduce.0-1 ((a0 Class) (a1 Class) (a2 Class) (a3 Class) (b0 Class) (b1 Class) (b2 Class) (b3 Class)) Bool (and (class.needs.AllReduce.0-1 a0 a1 a2 a3) (class.gives.AllReduce.0-1 a0 a1 a2 a3 b0 b1 b2 b3)))

; One step on classes, AllGather along factor 1:
; the collective on all its kinds of groups at once, or not at all; classes in no group keep what they have.
(define-fun class.needs.AllGather.1-2 ((a0 Class) (a1 Class) (a2 Class) (a3 Class)) Bool (and true
  (class.AllGather.needs.2 #b10 a0 a2)  ; [class.step.needs]
  (class.AllGather.needs.2 #b10 a1 a3)  ; [class.step.needs]
))
(define-fun class.gives.AllGather.1-2 ((a0 Class) (a1 Class) (a2 Class) (a3 Class) (b0 Class) (b1 Class) (b2 Class) (b3 Class)) Bool (and true
  (class.AllGather.gives.2 #b10 a0 a2 b0 b2)  ; [class.step.gives]
  (class.AllGather.gives.2 #b10 a1 a3 b1 b3)  ; [class.step.gives]
))
(define-fun class.step.AllGather.1-2 ((a0 Class) (a1 Class) (a2 Class) (a3 Class) (b0 Class) (b1 Class) (b2 Class) (b3 Class)) Bool (and (class.needs.AllGather.1-2 a0 a1 a2 a3) (class.gives.AllGather.1-2 a0 a1 a2 a3 b0 b1 b2 b3)))
; Where a reduction starts and what it must reach, for classes (the model, section 5).

; At the start every class holds all rows, with its own contribution; for an AllGather its own rows, with contributors
; that count as complete, and for a Broadcast device 0 alone holds anything, which counts as complete.
(define-fun start ((a0 Class) (a1 Class) (a2 Class) (a3 Class)) Bool (and
  (= a0 (class #b11 #b00))  ; [class.start]
  (= a1 (class #b11 #b00))  ; [class.start]
  (= a2 (class #b11 #b00))  ; [class.start]
  (= a3 (class #b11 #b00))  ; [class.start]
))

; The goal: contributors are complete along the factors that the reduction runs over and no others, and rows along those
; that it does not end split over; for a Reduce only device 0 matters.
(define-fun goal ((a0 Class) (a1 Class) (a2 Class) (a3 Class)) Bool (and true true
  (= (all-from a0) #b11)  ; [class.goal-contributors]
  (= (all-from a1) #b11)  ; [class.goal-contributors]
  (= (all-from a2) #b11)  ; [class.goal-contributors]
  (= (all-from a3) #b11)  ; [class.goal-contributors]
  (subset #b11 (all-rows a0))  ; [class.goal-rows]
  (subset #b11 (all-rows a1))  ; [class.goal-rows]
  (subset #b11 (all-rows a2))  ; [class.goal-rows]
  (subset #b11 (all-rows a3))  ; [class.goal-rows]
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
(define-fun move ((i Instruction) (a0 Class) (a1 Class) (a2 Class) (a3 Class) (b0 Class) (b1 Class) (b2 Class) (b3 Class)) Bool (and
  (bvule i #b11)  ; [program.known]
  (=> (= i #b00) (class.step.ReduceScatter.1-2 a0 a1 a2 a3 b0 b1 b2 b3))  ; [program.runs]
  (=> (= i #b01) (class.step.AllReduce.0-1 a0 a1 a2 a3 b0 b1 b2 b3))  ; [program.runs]
  (=> (= i #b10) (class.step.AllGather.1-2 a0 a1 a2 a3 b0 b1 b2 b3))  ; [program.runs]
  (= (= i #b11) (goal a0 a1 a2 a3))  ; [program.idle-at-goal]
  (=> (= i #b11) (= b0 a0))  ; [program.idle-keeps]
  (=> (= i #b11) (= b1 a1))  ; [program.idle-keeps]
  (=> (= i #b11) (= b2 a2))  ; [program.idle-keeps]
  (=> (= i #b11) (= b3 a3))  ; [program.idle-keeps]
))

; A step costs at least what every row says that applies to it.
(define-fun charged ((i Instruction) (cost Cost) (a0 Class) (a1 Class) (a2 Class) (a3 Class)) Bool (and true true
))

; From the start to the goal: a state after every step, each step a move that is charged; no blocked prefix.
(declare-const a0.0 Class)
(declare-const a1.0 Class)
(declare-const a2.0 Class)
(declare-const a3.0 Class)
(declare-const a0.1 Class)
(declare-const a1.1 Class)
(declare-const a2.1 Class)
(declare-const a3.1 Class)
(declare-const a0.2 Class)
(declare-const a1.2 Class)
(declare-const a2.2 Class)
(declare-const a3.2 Class)
(declare-const a0.3 Class)
(declare-const a1.3 Class)
(declare-const a2.3 Class)
(declare-const a3.3 Class)
(declare-const instruction.1 Instruction)
(declare-const instruction.2 Instruction)
(declare-const instruction.3 Instruction)
(declare-const cost.1 Cost)
(declare-const cost.2 Cost)
(declare-const cost.3 Cost)
(assert (start a0.0 a1.0 a2.0 a3.0))
(assert (move instruction.1 a0.0 a1.0 a2.0 a3.0 a0.1 a1.1 a2.1 a3.1))
(assert (move instruction.2 a0.1 a1.1 a2.1 a3.1 a0.2 a1.2 a2.2 a3.2))
(assert (move instruction.3 a0.2 a1.2 a2.2 a3.2 a0.3 a1.3 a2.3 a3.3))
(assert (charged instruction.1 cost.1 a0.0 a1.0 a2.0 a3.0))
(assert (charged instruction.2 cost.2 a0.1 a1.1 a2.1 a3.1))
(assert (charged instruction.3 cost.3 a0.2 a1.2 a2.2 a3.2))
(assert (goal a0.3 a1.3 a2.3 a3.3))

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
