; The five collectives on one group of <m> devices (the model, section 5): what they need before, s0 s1 ..., and what
; they give after, t0 t1 ..., in the group's order; s0 and t0 are the root's.
;   <m>                    how many devices are in the group, at least 2
;   <states>, <both>       the parameters "(s0 State) (s1 State) ...", without and with "(t0 State) (t1 State) ..."
;   <s>                    the arguments "s0 s1 ..."
;   each member: <i>       its place in the group; <place> the same as a Number; each other: all members but the root
;   each pair: <i>, <j>    two members, i before j
;   <members>              m as a Number

; The sum of a group has what any member has.
(define-fun sum.<m> (<states>) State
  (bvor s<i>                                                                                               ; each member
  nothing
  )                                                                                                        ; each member
)

; AllReduce needs equal, non-empty rows and row by row disjoint contributors, and gives everyone the sum.
(define-fun AllReduce.needs.<m> (<states>) Bool (and
  (not (= s0 nothing))                                                                     ; [AllReduce.non-empty]
  (equal-rows s0 s<i>)                                                         ; each other [AllReduce.equal-rows]
  (disjoint s<i> s<j>)                                                         ; each pair [AllReduce.disjoint]
))
(define-fun AllReduce.gives.<m> (<both>) Bool (and
  (= t<i> (sum.<m> <s>))                                                       ; each member [AllReduce.sum]
))

; ReduceScatter needs the same, and that m divides the number of rows, and gives the j-th member the j-th m-th of the
; sum.
(define-fun ReduceScatter.needs.<m> (<states>) Bool (and
  (not (= s0 nothing))                                                                     ; [ReduceScatter.non-empty]
  (equal-rows s0 s<i>)                                                         ; each other [ReduceScatter.equal-rows]
  (disjoint s<i> s<j>)                                                         ; each pair [ReduceScatter.disjoint]
  (= (bvurem (count s0) <members>) zero)                                                   ; [ReduceScatter.divides]
))
(define-fun ReduceScatter.gives.<m> (<both>) Bool (and
  (is-part t<i> (sum.<m> <s>) <place> <members>)                               ; each member [ReduceScatter.part]
))

; Reduce needs what AllReduce does, and gives the root the sum and the others nothing.
(define-fun Reduce.needs.<m> (<states>) Bool (and
  (not (= s0 nothing))                                                                     ; [Reduce.non-empty]
  (equal-rows s0 s<i>)                                                         ; each other [Reduce.equal-rows]
  (disjoint s<i> s<j>)                                                         ; each pair [Reduce.disjoint]
))
(define-fun Reduce.gives.<m> (<both>) Bool (and
  (= t0 (sum.<m> <s>))                                                                     ; [Reduce.sum]
  (= t<i> nothing)                                                             ; each other [Reduce.empties]
))

; AllGather needs non-empty states, the same number of rows each and no row held twice, and gives everyone the union.
(define-fun AllGather.needs.<m> (<states>) Bool (and
  (not (= s0 nothing))                                                                     ; [AllGather.non-empty]
  (= (count s0) (count s<i>))                                                  ; each other [AllGather.equal-counts]
  (disjoint-rows s<i> s<j>)                                                    ; each pair [AllGather.disjoint-rows]
))
(define-fun AllGather.gives.<m> (<both>) Bool (and
  (= t<i> (sum.<m> <s>))                                                       ; each member [AllGather.union]
))

; Broadcast needs that every member has no more than the root and some member less, and gives everyone the root's state.
; (So the root is not empty: some member has less.)
(define-fun Broadcast.needs.<m> (<states>) Bool (and
  (within s<i> s0)                                                             ; each other [Broadcast.no-more]
  (not (= <s>))                                                                            ; [Broadcast.some-less]
))
(define-fun Broadcast.gives.<m> (<both>) Bool (and
  (= t<i> s0)                                                                  ; each member [Broadcast.root]
))
