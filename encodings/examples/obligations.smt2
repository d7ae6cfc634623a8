; Is there a step of a collective along factor 0 of 2 x 2 devices that the class step does not follow?
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

; One step, ReduceScatter along factor 0:
; the collective on all its groups at once, or not at all; devices in no group keep what they have.
(define-fun needs.ReduceScatter.0-1 ((s0 State) (s1 State) (s2 State) (s3 State)) Bool (and true
  (ReduceScatter.needs.2 s0 s2)  ; [step.needs]
  (ReduceScatter.needs.2 s1 s3)  ; [step.needs]
))
(define-fun gives.ReduceScatter.0-1 ((s0 State) (s1 State) (s2 State) (s3 State) (t0 State) (t1 State) (t2 State) (t3 State)) Bool (and true
  (ReduceScatter.gives.2 s0 s2 t0 t2)  ; [step.gives]
  (ReduceScatter.gives.2 s1 s3 t1 t3)  ; [step.gives]
))
(define-fun step.ReduceScatter.0-1 ((s0 State) (s1 State) (s2 State) (s3 State) (t0 State) (t1 State) (t2 State) (t3 State)) Bool (and (needs.ReduceScatter.0-1 s0 s1 s2 s3) (gives.ReduceScatter.0-1 s0 s1 s2 s3 t0 t1 t2 t3)))

; One step, AllGather along factor 0:
; the collective on all its groups at once, or not at all; devices in no group keep what they have.
(define-fun needs.AllGather.0-1 ((s0 State) (s1 State) (s2 State) (s3 State)) Bool (and true
  (AllGather.needs.2 s0 s2)  ; [step.needs]
  (AllGather.needs.2 s1 s3)  ; [step.needs]
))
(define-fun gives.AllGather.0-1 ((s0 State) (s1 State) (s2 State) (s3 State) (t0 State) (t1 State) (t2 State) (t3 State)) Bool (and true
  (AllGather.gives.2 s0 s2 t0 t2)  ; [step.gives]
  (AllGather.gives.2 s1 s3 t1 t3)  ; [step.gives]
))
(define-fun step.AllGather.0-1 ((s0 State) (s1 State) (s2 State) (s3 State) (t0 State) (t1 State) (t2 State) (t3 State)) Bool (and (needs.AllGather.0-1 s0 s1 s2 s3) (gives.AllGather.0-1 s0 s1 s2 s3 t0 t1 t2 t3)))

; One step, Reduce along factor 0:
; the collective on all its groups at once, or not at all; devices in no group keep what they have.
(define-fun needs.Reduce.0-1 ((s0 State) (s1 State) (s2 State) (s3 State)) Bool (and true
  (Reduce.needs.2 s0 s2)  ; [step.needs]
  (Reduce.needs.2 s1 s3)  ; [step.needs]
))
(define-fun gives.Reduce.0-1 ((s0 State) (s1 State) (s2 State) (s3 State) (t0 State) (t1 State) (t2 State) (t3 State)) Bool (and true
  (Reduce.gives.2 s0 s2 t0 t2)  ; [step.gives]
  (Reduce.gives.2 s1 s3 t1 t3)  ; [step.gives]
))
(define-fun step.Reduce.0-1 ((s0 State) (s1 State) (s2 State) (s3 State) (t0 State) (t1 State) (t2 State) (t3 State)) Bool (and (needs.Reduce.0-1 s0 s1 s2 s3) (gives.Reduce.0-1 s0 s1 s2 s3 t0 t1 t2 t3)))

; One step, Broadcast along factor 0:
; the collective on all its groups at once, or not at all; devices in no group keep what they have.
(define-fun needs.Broadcast.0-1 ((s0 State) (s1 State) (s2 State) (s3 State)) Bool (and true
  (Broadcast.needs.2 s0 s2)  ; [step.needs]
  (Broadcast.needs.2 s1 s3)  ; [step.needs]
))
(define-fun gives.Broadcast.0-1 ((s0 State) (s1 State) (s2 State) (s3 State) (t0 State) (t1 State) (t2 State) (t3 State)) Bool (and true
  (Broadcast.gives.2 s0 s2 t0 t2)  ; [step.gives]
  (Broadcast.gives.2 s1 s3 t1 t3)  ; [step.gives]
))
(define-fun step.Broadcast.0-1 ((s0 State) (s1 State) (s2 State) (s3 State) (t0 State) (t1 State) (t2 State) (t3 State)) Bool (and (needs.Broadcast.0-1 s0 s1 s2 s3) (gives.Broadcast.0-1 s0 s1 s2 s3 t0 t1 t2 t3)))

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

; One step on classes, ReduceScatter along factor 0:
; the collective on all its kinds of groups at once, or not at all; classes in no group keep what they have.
(define-fun class.needs.ReduceScatter.0-1 ((a0 Class) (a1 Class) (a2 Class) (a3 Class)) Bool (and true
  (class.ReduceScatter.needs.2 #b01 a0 a1)  ; [class.step.needs]
  (class.ReduceScatter.needs.2 #b01 a2 a3)  ; [class.step.needs]
))
(define-fun class.gives.ReduceScatter.0-1 ((a0 Class) (a1 Class) (a2 Class) (a3 Class) (b0 Class) (b1 Class) (b2 Class) (b3 Class)) Bool (and true
  (class.ReduceScatter.gives.2 #b01 a0 a1 b0 b1)  ; [class.step.gives]
  (class.ReduceScatter.gives.2 #b01 a2 a3 b2 b3)  ; [class.step.gives]
))
(define-fun class.step.ReduceScatter.0-1 ((a0 Class) (a1 Class) (a2 Class) (a3 Class) (b0 Class) (b1 Class) (b2 Class) (b3 Class)) Bool (and (class.needs.ReduceScatter.0-1 a0 a1 a2 a3) (class.gives.ReduceScatter.0-1 a0 a1 a2 a3 b0 b1 b2 b3)))

; One step on classes, AllGather along factor 0:
; the collective on all its kinds of groups at once, or not at all; classes in no group keep what they have.
(define-fun class.needs.AllGather.0-1 ((a0 Class) (a1 Class) (a2 Class) (a3 Class)) Bool (and true
  (class.AllGather.needs.2 #b01 a0 a1)  ; [class.step.needs]
  (class.AllGather.needs.2 #b01 a2 a3)  ; [class.step.needs]
))
(define-fun class.gives.AllGather.0-1 ((a0 Class) (a1 Class) (a2 Class) (a3 Class) (b0 Class) (b1 Class) (b2 Class) (b3 Class)) Bool (and true
  (class.AllGather.gives.2 #b01 a0 a1 b0 b1)  ; [class.step.gives]
  (class.AllGather.gives.2 #b01 a2 a3 b2 b3)  ; [class.step.gives]
))
(define-fun class.step.AllGather.0-1 ((a0 Class) (a1 Class) (a2 Class) (a3 Class) (b0 Class) (b1 Class) (b2 Class) (b3 Class)) Bool (and (class.needs.AllGather.0-1 a0 a1 a2 a3) (class.gives.AllGather.0-1 a0 a1 a2 a3 b0 b1 b2 b3)))

; One step on classes, Reduce along factor 0:
; the collective on all its kinds of groups at once, or not at all; classes in no group keep what they have.
(define-fun class.needs.Reduce.0-1 ((a0 Class) (a1 Class) (a2 Class) (a3 Class)) Bool (and true
  (class.Reduce.needs.2 #b01 a0 a1)  ; [class.step.needs]
  (class.Reduce.needs.2 #b01 a2 a3)  ; [class.step.needs]
))
(define-fun class.gives.Reduce.0-1 ((a0 Class) (a1 Class) (a2 Class) (a3 Class) (b0 Class) (b1 Class) (b2 Class) (b3 Class)) Bool (and true
  (class.Reduce.gives.2 #b01 a0 a1 b0 b1)  ; [class.step.gives]
  (class.Reduce.gives.2 #b01 a2 a3 b2 b3)  ; [class.step.gives]
))
(define-fun class.step.Reduce.0-1 ((a0 Class) (a1 Class) (a2 Class) (a3 Class) (b0 Class) (b1 Class) (b2 Class) (b3 Class)) Bool (and (class.needs.Reduce.0-1 a0 a1 a2 a3) (class.gives.Reduce.0-1 a0 a1 a2 a3 b0 b1 b2 b3)))

; One step on classes, Broadcast along factor 0:
; the collective on all its kinds of groups at once, or not at all; classes in no group keep what they have.
(define-fun class.needs.Broadcast.0-1 ((a0 Class) (a1 Class) (a2 Class) (a3 Class)) Bool (and true
  (class.Broadcast.needs.2 #b01 a0 a1)  ; [class.step.needs]
  (class.Broadcast.needs.2 #b01 a2 a3)  ; [class.step.needs]
))
(define-fun class.gives.Broadcast.0-1 ((a0 Class) (a1 Class) (a2 Class) (a3 Class) (b0 Class) (b1 Class) (b2 Class) (b3 Class)) Bool (and true
  (class.Broadcast.gives.2 #b01 a0 a1 b0 b1)  ; [class.step.gives]
  (class.Broadcast.gives.2 #b01 a2 a3 b2 b3)  ; [class.step.gives]
))
(define-fun class.step.Broadcast.0-1 ((a0 Class) (a1 Class) (a2 Class) (a3 Class) (b0 Class) (b1 Class) (b2 Class) (b3 Class)) Bool (and (class.needs.Broadcast.0-1 a0 a1 a2 a3) (class.gives.Broadcast.0-1 a0 a1 a2 a3 b0 b1 b2 b3)))

; Which states a class state stands for, over factors of sizes 2 and 2.
;
; A device's digits are those of its number, the first factor most significant. Chunks are numbered either like the
; devices (straight) or with the last factor most significant (turned), depending on which factor was scattered first.

; The digits of a number in either numbering, and whether a factor is in a set.
(define-fun straight0 ((number Number)) Number (bvurem (bvudiv number #b00010) #b00010))
(define-fun straight1 ((number Number)) Number (bvurem (bvudiv number #b00001) #b00010))
(define-fun turned0 ((number Number)) Number (bvurem (bvudiv number #b00001) #b00010))
(define-fun turned1 ((number Number)) Number (bvurem (bvudiv number #b00010) #b00010))
(define-fun in0 ((x Factors)) Bool (= ((_ extract 0 0) x) #b1))
(define-fun in1 ((x Factors)) Bool (= ((_ extract 1 1) x) #b1))

; The digits of a number, in this numbering, are those of a device, but for the factors that are free.
(define-fun agrees ((number Number) (turned Bool) (device Number) (free Factors)) Bool (and true
  (or (in0 free) (= (ite turned (turned0 number) (straight0 number)) (straight0 device)))  ; [agrees]
  (or (in1 free) (= (ite turned (turned1 number) (straight1 number)) (straight1 device)))  ; [agrees]
))

; A chunk with a contributor is meant to be at a device where its class holds anything, the chunk agrees with the device
; but for the factors with all rows, and the contributor agrees with it but for the factors with all contributors.
(define-fun meant ((chunk Number) (from Number) (device Number) (a Class) (turned Bool)) Bool (and
  (held a)  ; [described.held]
  (agrees chunk turned device (all-rows a))  ; [described.rows]
  (agrees from false device (all-from a))  ; [described.contributors]
))

; A class state describes a device's state if exactly what is meant to be there is there.
(define-fun device-described ((s State) (device Number) (a Class) (turned Bool)) Bool (and
  (=> (= ((_ extract 0 0) s) #b1) (meant #b00000 #b00000 device a turned))  ; [described.no-more]
  (=> (= ((_ extract 1 1) s) #b1) (meant #b00000 #b00001 device a turned))  ; [described.no-more]
  (=> (= ((_ extract 2 2) s) #b1) (meant #b00000 #b00010 device a turned))  ; [described.no-more]
  (=> (= ((_ extract 3 3) s) #b1) (meant #b00000 #b00011 device a turned))  ; [described.no-more]
  (=> (= ((_ extract 4 4) s) #b1) (meant #b00001 #b00000 device a turned))  ; [described.no-more]
  (=> (= ((_ extract 5 5) s) #b1) (meant #b00001 #b00001 device a turned))  ; [described.no-more]
  (=> (= ((_ extract 6 6) s) #b1) (meant #b00001 #b00010 device a turned))  ; [described.no-more]
  (=> (= ((_ extract 7 7) s) #b1) (meant #b00001 #b00011 device a turned))  ; [described.no-more]
  (=> (= ((_ extract 8 8) s) #b1) (meant #b00010 #b00000 device a turned))  ; [described.no-more]
  (=> (= ((_ extract 9 9) s) #b1) (meant #b00010 #b00001 device a turned))  ; [described.no-more]
  (=> (= ((_ extract 10 10) s) #b1) (meant #b00010 #b00010 device a turned))  ; [described.no-more]
  (=> (= ((_ extract 11 11) s) #b1) (meant #b00010 #b00011 device a turned))  ; [described.no-more]
  (=> (= ((_ extract 12 12) s) #b1) (meant #b00011 #b00000 device a turned))  ; [described.no-more]
  (=> (= ((_ extract 13 13) s) #b1) (meant #b00011 #b00001 device a turned))  ; [described.no-more]
  (=> (= ((_ extract 14 14) s) #b1) (meant #b00011 #b00010 device a turned))  ; [described.no-more]
  (=> (= ((_ extract 15 15) s) #b1) (meant #b00011 #b00011 device a turned))  ; [described.no-more]
  (=> (meant #b00000 #b00000 device a turned) (= ((_ extract 0 0) s) #b1))  ; [described.no-less]
  (=> (meant #b00000 #b00001 device a turned) (= ((_ extract 1 1) s) #b1))  ; [described.no-less]
  (=> (meant #b00000 #b00010 device a turned) (= ((_ extract 2 2) s) #b1))  ; [described.no-less]
  (=> (meant #b00000 #b00011 device a turned) (= ((_ extract 3 3) s) #b1))  ; [described.no-less]
  (=> (meant #b00001 #b00000 device a turned) (= ((_ extract 4 4) s) #b1))  ; [described.no-less]
  (=> (meant #b00001 #b00001 device a turned) (= ((_ extract 5 5) s) #b1))  ; [described.no-less]
  (=> (meant #b00001 #b00010 device a turned) (= ((_ extract 6 6) s) #b1))  ; [described.no-less]
  (=> (meant #b00001 #b00011 device a turned) (= ((_ extract 7 7) s) #b1))  ; [described.no-less]
  (=> (meant #b00010 #b00000 device a turned) (= ((_ extract 8 8) s) #b1))  ; [described.no-less]
  (=> (meant #b00010 #b00001 device a turned) (= ((_ extract 9 9) s) #b1))  ; [described.no-less]
  (=> (meant #b00010 #b00010 device a turned) (= ((_ extract 10 10) s) #b1))  ; [described.no-less]
  (=> (meant #b00010 #b00011 device a turned) (= ((_ extract 11 11) s) #b1))  ; [described.no-less]
  (=> (meant #b00011 #b00000 device a turned) (= ((_ extract 12 12) s) #b1))  ; [described.no-less]
  (=> (meant #b00011 #b00001 device a turned) (= ((_ extract 13 13) s) #b1))  ; [described.no-less]
  (=> (meant #b00011 #b00010 device a turned) (= ((_ extract 14 14) s) #b1))  ; [described.no-less]
  (=> (meant #b00011 #b00011 device a turned) (= ((_ extract 15 15) s) #b1))  ; [described.no-less]
))
(define-fun described ((s0 State) (s1 State) (s2 State) (s3 State) (a0 Class) (a1 Class) (a2 Class) (a3 Class) (turned Bool)) Bool (and
  (proper a0)  ; [described.proper]
  (proper a1)  ; [described.proper]
  (proper a2)  ; [described.proper]
  (proper a3)  ; [described.proper]
  (device-described s0 #b00000 a0 turned)  ; [described.devices]
  (device-described s1 #b00001 a2 turned)  ; [described.devices]
  (device-described s2 #b00010 a1 turned)  ; [described.devices]
  (device-described s3 #b00011 a3 turned)  ; [described.devices]
))

; The numbering plays no part where every device holds every chunk or nothing.
(define-fun whole ((a0 Class) (a1 Class) (a2 Class) (a3 Class)) Bool (and
  (or (= (all-rows a0) every) (= a0 empty))
  (or (= (all-rows a1) every) (= a1 empty))
  (or (= (all-rows a2) every) (= a2 empty))
  (or (= (all-rows a3) every) (= a3 empty))
))

; The obligation of AllReduce along factor 0: a concrete step implies the class step.
;
; If s0 s1 ... are described by classes a0 a1 ..., the step leads to t0 t1 ..., and these are described by any classes
; c0 c1 ... at all, in the same numbering of the chunks unless it played no part before, then the class step can be
; taken and what it gives, b0 b1 ..., describes t0 t1 ... . This is its negation, to be refuted.
; (States that no classes describe do occur, where scatters don't line up, but the goal cannot be reached from them; a
; test tries them all.)
(define-fun counterexample.AllReduce.0-1 ((s0 State) (s1 State) (s2 State) (s3 State) (t0 State) (t1 State) (t2 State) (t3 State) (a0 Class) (a1 Class) (a2 Class) (a3 Class) (b0 Class) (b1 Class) (b2 Class) (b3 Class) (c0 Class) (c1 Class) (c2 Class) (c3 Class) (turned Bool) (then Bool)) Bool (and
  (described s0 s1 s2 s3 a0 a1 a2 a3 turned)  ; [obligation.before]
  (step.AllReduce.0-1 s0 s1 s2 s3 t0 t1 t2 t3)  ; [obligation.step]
  (described t0 t1 t2 t3 c0 c1 c2 c3 then)  ; [obligation.after]
  (or (= turned then) (whole a0 a1 a2 a3))  ; [obligation.numbering]
  (class.gives.AllReduce.0-1 a0 a1 a2 a3 b0 b1 b2 b3)  ; [obligation.class-gives]
  (not (and (class.needs.AllReduce.0-1 a0 a1 a2 a3) (described t0 t1 t2 t3 b0 b1 b2 b3 then)))
))

; The obligation of ReduceScatter along factor 0: a concrete step implies the class step.
;
; If s0 s1 ... are described by classes a0 a1 ..., the step leads to t0 t1 ..., and these are described by any classes
; c0 c1 ... at all, in the same numbering of the chunks unless it played no part before, then the class step can be
; taken and what it gives, b0 b1 ..., describes t0 t1 ... . This is its negation, to be refuted.
; (States that no classes describe do occur, where scatters don't line up, but the goal cannot be reached from them; a
; test tries them all.)
(define-fun counterexample.ReduceScatter.0-1 ((s0 State) (s1 State) (s2 State) (s3 State) (t0 State) (t1 State) (t2 State) (t3 State) (a0 Class) (a1 Class) (a2 Class) (a3 Class) (b0 Class) (b1 Class) (b2 Class) (b3 Class) (c0 Class) (c1 Class) (c2 Class) (c3 Class) (turned Bool) (then Bool)) Bool (and
  (described s0 s1 s2 s3 a0 a1 a2 a3 turned)  ; [obligation.before]
  (step.ReduceScatter.0-1 s0 s1 s2 s3 t0 t1 t2 t3)  ; [obligation.step]
  (described t0 t1 t2 t3 c0 c1 c2 c3 then)  ; [obligation.after]
  (or (= turned then) (whole a0 a1 a2 a3))  ; [obligation.numbering]
  (class.gives.ReduceScatter.0-1 a0 a1 a2 a3 b0 b1 b2 b3)  ; [obligation.class-gives]
  (not (and (class.needs.ReduceScatter.0-1 a0 a1 a2 a3) (described t0 t1 t2 t3 b0 b1 b2 b3 then)))
))

; The obligation of AllGather along factor 0: a concrete step implies the class step.
;
; If s0 s1 ... are described by classes a0 a1 ..., the step leads to t0 t1 ..., and these are described by any classes
; c0 c1 ... at all, in the same numbering of the chunks unless it played no part before, then the class step can be
; taken and what it gives, b0 b1 ..., describes t0 t1 ... . This is its negation, to be refuted.
; (States that no classes describe do occur, where scatters don't line up, but the goal cannot be reached from them; a
; test tries them all.)
(define-fun counterexample.AllGather.0-1 ((s0 State) (s1 State) (s2 State) (s3 State) (t0 State) (t1 State) (t2 State) (t3 State) (a0 Class) (a1 Class) (a2 Class) (a3 Class) (b0 Class) (b1 Class) (b2 Class) (b3 Class) (c0 Class) (c1 Class) (c2 Class) (c3 Class) (turned Bool) (then Bool)) Bool (and
  (described s0 s1 s2 s3 a0 a1 a2 a3 turned)  ; [obligation.before]
  (step.AllGather.0-1 s0 s1 s2 s3 t0 t1 t2 t3)  ; [obligation.step]
  (described t0 t1 t2 t3 c0 c1 c2 c3 then)  ; [obligation.after]
  (or (= turned then) (whole a0 a1 a2 a3))  ; [obligation.numbering]
  (class.gives.AllGather.0-1 a0 a1 a2 a3 b0 b1 b2 b3)  ; [obligation.class-gives]
  (not (and (class.needs.AllGather.0-1 a0 a1 a2 a3) (described t0 t1 t2 t3 b0 b1 b2 b3 then)))
))

; The obligation of Reduce along factor 0: a concrete step implies the class step.
;
; If s0 s1 ... are described by classes a0 a1 ..., the step leads to t0 t1 ..., and these are described by any classes
; c0 c1 ... at all, in the same numbering of the chunks unless it played no part before, then the class step can be
; taken and what it gives, b0 b1 ..., describes t0 t1 ... . This is its negation, to be refuted.
; (States that no classes describe do occur, where scatters don't line up, but the goal cannot be reached from them; a
; test tries them all.)
(define-fun counterexample.Reduce.0-1 ((s0 State) (s1 State) (s2 State) (s3 State) (t0 State) (t1 State) (t2 State) (t3 State) (a0 Class) (a1 Class) (a2 Class) (a3 Class) (b0 Class) (b1 Class) (b2 Class) (b3 Class) (c0 Class) (c1 Class) (c2 Class) (c3 Class) (turned Bool) (then Bool)) Bool (and
  (described s0 s1 s2 s3 a0 a1 a2 a3 turned)  ; [obligation.before]
  (step.Reduce.0-1 s0 s1 s2 s3 t0 t1 t2 t3)  ; [obligation.step]
  (described t0 t1 t2 t3 c0 c1 c2 c3 then)  ; [obligation.after]
  (or (= turned then) (whole a0 a1 a2 a3))  ; [obligation.numbering]
  (class.gives.Reduce.0-1 a0 a1 a2 a3 b0 b1 b2 b3)  ; [obligation.class-gives]
  (not (and (class.needs.Reduce.0-1 a0 a1 a2 a3) (described t0 t1 t2 t3 b0 b1 b2 b3 then)))
))

; The obligation of Broadcast along factor 0: a concrete step implies the class step.
;
; If s0 s1 ... are described by classes a0 a1 ..., the step leads to t0 t1 ..., and these are described by any classes
; c0 c1 ... at all, in the same numbering of the chunks unless it played no part before, then the class step can be
; taken and what it gives, b0 b1 ..., describes t0 t1 ... . This is its negation, to be refuted.
; (States that no classes describe do occur, where scatters don't line up, but the goal cannot be reached from them; a
; test tries them all.)
(define-fun counterexample.Broadcast.0-1 ((s0 State) (s1 State) (s2 State) (s3 State) (t0 State) (t1 State) (t2 State) (t3 State) (a0 Class) (a1 Class) (a2 Class) (a3 Class) (b0 Class) (b1 Class) (b2 Class) (b3 Class) (c0 Class) (c1 Class) (c2 Class) (c3 Class) (turned Bool) (then Bool)) Bool (and
  (described s0 s1 s2 s3 a0 a1 a2 a3 turned)  ; [obligation.before]
  (step.Broadcast.0-1 s0 s1 s2 s3 t0 t1 t2 t3)  ; [obligation.step]
  (described t0 t1 t2 t3 c0 c1 c2 c3 then)  ; [obligation.after]
  (or (= turned then) (whole a0 a1 a2 a3))  ; [obligation.numbering]
  (class.gives.Broadcast.0-1 a0 a1 a2 a3 b0 b1 b2 b3)  ; [obligation.class-gives]
  (not (and (class.needs.Broadcast.0-1 a0 a1 a2 a3) (described t0 t1 t2 t3 b0 b1 b2 b3 then)))
))
(declare-const s0 State)
(declare-const s1 State)
(declare-const s2 State)
(declare-const s3 State)
(declare-const t0 State)
(declare-const t1 State)
(declare-const t2 State)
(declare-const t3 State)
(declare-const a0 Class)
(declare-const a1 Class)
(declare-const a2 Class)
(declare-const a3 Class)
(declare-const b0 Class)
(declare-const b1 Class)
(declare-const b2 Class)
(declare-const b3 Class)
(declare-const c0 Class)
(declare-const c1 Class)
(declare-const c2 Class)
(declare-const c3 Class)
(declare-const turned Bool)
(declare-const then Bool)
(push 1)
(assert (counterexample.AllReduce.0-1 s0 s1 s2 s3 t0 t1 t2 t3 a0 a1 a2 a3 b0 b1 b2 b3 c0 c1 c2 c3 turned then))
(set-info :status unsat)
(check-sat)
(pop 1)
(push 1)
(assert (counterexample.ReduceScatter.0-1 s0 s1 s2 s3 t0 t1 t2 t3 a0 a1 a2 a3 b0 b1 b2 b3 c0 c1 c2 c3 turned then))
(set-info :status unsat)
(check-sat)
(pop 1)
(push 1)
(assert (counterexample.AllGather.0-1 s0 s1 s2 s3 t0 t1 t2 t3 a0 a1 a2 a3 b0 b1 b2 b3 c0 c1 c2 c3 turned then))
(set-info :status unsat)
(check-sat)
(pop 1)
(push 1)
(assert (counterexample.Reduce.0-1 s0 s1 s2 s3 t0 t1 t2 t3 a0 a1 a2 a3 b0 b1 b2 b3 c0 c1 c2 c3 turned then))
(set-info :status unsat)
(check-sat)
(pop 1)
(push 1)
(assert (counterexample.Broadcast.0-1 s0 s1 s2 s3 t0 t1 t2 t3 a0 a1 a2 a3 b0 b1 b2 b3 c0 c1 c2 c3 turned then))
(set-info :status unsat)
(check-sat)
(pop 1)
