; Buffers of <l> pieces; piece 0 is in the lowest bits.
;   <l>, <bits>                         how many pieces, and the bits of such a buffer
;   each piece: <i>, <high>, <low>      a position, and its last and first bit
;   each later: <i>                     the positions but the first, the last one first
(define-sort Buffer.<l> () (_ BitVec <bits>))
(define-fun at.<l>.<i> ((s Buffer.<l>)) Piece ((_ extract <high> <low>) s))                   ; each piece
(define-fun undefined.<l> () Buffer.<l> (_ bv0 <bits>))

; Two buffers are added position by position.
(define-fun plus.<l> ((s Buffer.<l>) (t Buffer.<l>)) Buffer.<l>
  (concat (add (at.<l>.<i> s) (at.<l>.<i> t))                                                 ; each later
  (add (at.<l>.0 s) (at.<l>.0 t))
  )                                                                                           ; each later
)
