; The five collectives on a group that takes in <m> classes of devices: what they need before, a0 a1 ..., and what they
; give after, b0 b1 ..., the root's class first. `joined` is the set of the factors along which the group's devices
; differ.
;   <m>                    how many classes of devices are in such a group: a power of two, at least 2
;   <states>, <both>       the parameters "(joined Factors) (a0 Class) ...", without and with "(b0 Class) ..."
;   <a>                    the arguments "a0 a1 ..."
;   each member: <i>       a class; each other: all but the root's

; AllReduce needs members alike, with all rows along the joined factors and their own contributors along these, and
; gives everyone all contributors along these. (So they hold something: where nothing is held there are no rows.)
(define-fun class.AllReduce.needs.<m> (<states>) Bool (and
  (= a<i> a0)                                                      ; each other [class.AllReduce.alike]
  (subset joined (all-rows a0))                                                ; [class.AllReduce.rows]
  (apart joined (all-from a0))                                                 ; [class.AllReduce.contributors]
))
(define-fun class.AllReduce.gives.<m> (<both>) Bool (and
  (= b<i> (class (all-rows a0) (bvor (all-from a0) joined)))       ; each member [class.AllReduce.sum]
))

; ReduceScatter needs the same, and leaves everyone its own rows along the joined factors, with all contributors along
; these.
(define-fun class.ReduceScatter.needs.<m> (<states>) Bool (and
  (= a<i> a0)                                                      ; each other [class.ReduceScatter.alike]
  (subset joined (all-rows a0))                                                ; [class.ReduceScatter.rows]
  (apart joined (all-from a0))                                                 ; [class.ReduceScatter.contributors]
))
(define-fun parted.<m> ((joined Factors) (a0 Class)) Class
  (class (bvand (all-rows a0) (bvnot joined)) (bvor (all-from a0) joined)))
(define-fun class.ReduceScatter.gives.<m> (<both>) Bool (and
  (= b<i> (parted.<m> joined a0))                                  ; each member [class.ReduceScatter.part]
))

; Reduce needs the same, and gives the root all contributors along the joined factors, and the others nothing.
(define-fun class.Reduce.needs.<m> (<states>) Bool (and
  (= a<i> a0)                                                      ; each other [class.Reduce.alike]
  (subset joined (all-rows a0))                                                ; [class.Reduce.rows]
  (apart joined (all-from a0))                                                 ; [class.Reduce.contributors]
))
(define-fun class.Reduce.gives.<m> (<both>) Bool (and
  (= b0 (class (all-rows a0) (bvor (all-from a0) joined)))                     ; [class.Reduce.sum]
  (= b<i> empty)                                                   ; each other [class.Reduce.empties]
))

; AllGather needs members alike that hold something and their own rows along the joined factors, and gives everyone all
; rows along these.
(define-fun class.AllGather.needs.<m> (<states>) Bool (and
  (held a0)                                                                    ; [class.AllGather.held]
  (= a<i> a0)                                                      ; each other [class.AllGather.alike]
  (apart joined (all-rows a0))                                                 ; [class.AllGather.rows]
))
(define-fun class.AllGather.gives.<m> (<both>) Bool (and
  (= b<i> (class (bvor (all-rows a0) joined) (all-from a0)))       ; each member [class.AllGather.union]
))

; Broadcast needs a root with all rows and all contributors along the joined factors, of which every member has no more
; and some member less, and gives everyone what the root holds.
(define-fun class.Broadcast.needs.<m> (<states>) Bool (and
  (subset joined (all-rows a0))                                                ; [class.Broadcast.rows]
  (subset joined (all-from a0))                                                ; [class.Broadcast.contributors]
  (= (bvor a<i> a0) a0)                                            ; each other [class.Broadcast.no-more]
  (not (= <a>))                                                                ; [class.Broadcast.some-less]
))
(define-fun class.Broadcast.gives.<m> (<both>) Bool (and
  (= b<i> a0)                                                      ; each member [class.Broadcast.root]
))
