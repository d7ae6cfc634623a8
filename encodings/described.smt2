; Which states a class state stands for, over factors of sizes <sizes>.
;
; A device's digits are those of its number, the first factor most significant. Chunks are numbered either like the
; devices (straight) or with the last factor most significant (turned), depending on which factor was scattered first.
;   each factor: <f>, <size>   its number and its size as a Number
;   <straight>, <turned>       how many numbers apart two neighbours along it are, in the one numbering and the other
;   each device: <d>, <number>, <z>   a device, its number, and its class: the factors in which its digits are not zero
;   each class: <z>            a class of devices
;   each bit: <bit>, <chunk>, <from>   a bit of a device's state, and the chunk and contributor it speaks of
;   <states>, <classes>        the parameters "(s0 State) ..." and "(a0 Class) ..."

; The digits of a number in either numbering, and whether a factor is in a set.
(define-fun straight<f> ((number Number)) Number (bvurem (bvudiv number <straight>) <size>))               ; each factor
(define-fun turned<f> ((number Number)) Number (bvurem (bvudiv number <turned>) <size>))                   ; each factor
(define-fun in<f> ((x Factors)) Bool (= ((_ extract <f> <f>) x) #b1))                                      ; each factor

; The digits of a number, in this numbering, are those of a device, but for the factors that are free.
(define-fun agrees ((number Number) (turned Bool) (device Number) (free Factors)) Bool (and true
  (or (in<f> free) (= (ite turned (turned<f> number) (straight<f> number)) (straight<f> device))) ; each factor [agrees]
))

; A chunk with a contributor is meant to be at a device where its class holds anything, the chunk agrees with the device
; but for the factors with all rows, and the contributor agrees with it but for the factors with all contributors.
(define-fun meant ((chunk Number) (from Number) (device Number) (a Class) (turned Bool)) Bool (and
  (held a)                                                                                          ; [described.held]
  (agrees chunk turned device (all-rows a))                                                         ; [described.rows]
  (agrees from false device (all-from a))                                                   ; [described.contributors]
))

; A class state describes a device's state if exactly what is meant to be there is there.
(define-fun device-described ((s State) (device Number) (a Class) (turned Bool)) Bool (and
  (=> (= ((_ extract <bit> <bit>) s) #b1) (meant <chunk> <from> device a turned))       ; each bit [described.no-more]
  (=> (meant <chunk> <from> device a turned) (= ((_ extract <bit> <bit>) s) #b1))       ; each bit [described.no-less]
))
(define-fun described (<states> <classes> (turned Bool)) Bool (and
  (proper a<z>)                                                                         ; each class  [described.proper]
  (device-described s<d> <number> a<z> turned)                                         ; each device [described.devices]
))

; The numbering plays no part where every device holds every chunk or nothing.
(define-fun whole (<classes>) Bool (and
  (or (= (all-rows a<z>) every) (= a<z> empty))                                               ; each class
))
