"""The costs that the estimator adds up. Written by `tests.benchmarks.fit_estimator`."""

# ruff: noqa: E501
# fmt: off
from base64 import b85decode
from zlib import decompress

from efrit_budget.budget.shapes import Pairs


def table(packed: str) -> bytes:
    """Return the bytes of a packed table."""
    return decompress(b85decode(packed))


def pairs(*packed: str) -> Pairs:
    """Return the classes of bytes and the costs of their pairs from packed tables."""
    first, second, eighths, rest = map(table, packed)
    return Pairs(first, second, eighths, rest)

COSTS = {
    "three digits": 0.063,
    "four digits": 0.493,
    "five digits": 0.226,
    "eight digits": 0.437,
    "gaps": 0.121,
    "gaps before digits": 0.76,
    "pieces": 0.409,
}
JOINTS = pairs(
    "c-njL016lc9$*6s1`YuX3<(Ye4h<6;8XOuHY}l|N0SpQP3<?Yk5-#8b0RavS4igUG1QQY*5*~aQU;qH+bju+",
    "c-qCoK@xx<3<E%HlZJxU|NmAG9^vfHY}Kc=S~<)?g29knj-Cm;ld@rkYl|@_$GJrab^q)E$)OCd",
    "c-mb~K@Pwm3~J-Sqfh8l`ZS)-5M8niV?u=@xkxU8tQ3neHx+|UF&JNH?hG15>zz|usjZ3T)>aK?9i41H4!?+&{9$T8N<;K+pld6ea?j&mw^;he7&mXXfI|Q$!?C9uoZ|V2FA#q`F0_w^",
    "c-mc0$qm3T2s7frlMxt&(OA9Ipr)-Kkq?1Mpph^@L0W=awM;aH;|E(Oz`Qh|<=KV=1BFzP316>=GB&7lzG7r^V`uD?%~4xJB{Ffl#ai3b($76l1?CT5_w0P(0xIMP?f",
)
BORDERS = pairs(
    "c-s5$0SX>G_<#*uK;s{P1E|0ToB$%f04D%TGf)l$6buX;3?MilAwWUF00<on6ciX36c`K?3K}LPC<p)r48WLy!N34XGXSxWaDe",
    "c-p1Q%MySf2nA3c5}76c|F<GJP1ESAv$}A>Y^c>{uFrfv#-c3U{jn4^{D(js5(xrC#3am~z1oy^&B~g^@2DTVo*N5e2NM",
    "c-mc!%MHLV2t!ll&?6&w6h>oo*M>-~N|X=rvmr?^E?*l+CcBDR^C&%a!bBxF-_0SX4|>~+FleOIBI_R5?t=0I6Dl3$zNK)!mg-FBR<;eAGa0L^=_cQvAAM~{TtFPXlxv(n{`eosQH0h",
    "c-l=)$q@uW2*TpwlMo1{L+jMnV`^u3sFWZAfDxyg%v)rT5NB{klVOKpoE3DtNY`>aXR4LORTBf(@ZBTrc0tTBCr+hF+CWBY>ze$eL%}w5%s#T1DEF<Ge__@ZB(+@g*I)kXpWz3jV+;r",
)
UNKNOWN = pairs(
    "c-muNpb!W!C@>f>I0PgVG%y5AFmNbXu))EAVL<_q3j_zi@)sB;EO;;hDE~pgp&(#`L&Aau1_libg8={lXJry$",
    "c-qa$xe>rH2n0Yths=SV{=0SHaRo}W>580E(+2NP&{P{ENuVmn|Bml{78hgEHb!O04PMpo0b2",
    "c-mc0!4U*82!iq9(-JJj(o#AH`#dKhkwH{6Q7jOkFB(u&D_ogEO@kqq6cX2LQ6>#4l?xhD4i<)IW#}nREcb54Oe9ZV+@`=?=zntF$aWU3(T`INSaz_qqbcIzUo|iONWZ`MM)yX_MwrJ%eGZ;dG(5z>L?)^I0mep7;Q",
    "c-n1_!4U&72m__jLr+Se6iQR;fxApzVGOnx1T-n3o3Z5@0$^Z3;(8DFLLUY>VQpM8s(N6be6}92%MeZE!Q8S_rB8qUhPBn^I(|`}r|%Q}%G5Poo9JUztj=NY=rJZG{4tHZ?cDF+dDyLbC$zGtZ~MsyNv01M",
)
CYRILLIC = pairs(
    "c-muN7+~-LL<le_7$^XNgMvbU1A~Kuf`dSULqUVWgarW`4qPxOP}uN5L7_l_!Jwdk%GLt_Gm8yz",
    "c-qCyK@Pwm3<E*iDWORT{QtLzKOl7vb6w!))`64=n3-UYTJ!$)2=~+%qfp>XRsqVp`wd<j0QC",
    "c-mc#!41GL2m>AEktZW$l#JHVT?_%KB@d7<#(=;9FyX`S?yZZ2?Y#tsbTbsDJH-7xIP<Ct8(h)@>-T40><<|;g&0|B+Az|?>tyO8$XnTA!l#@a(Pj6DjO34Iy`QEqFa",
    "c-n=IK?(pd2m`0|;IU8eDLyS<U&I!cw$Qm4BqjnFli(msE%20%{Abn@o#u?W>nlZEDWB)nR#d~P>w@;!!Grw!W%>Z_7zQu",
)
# The class of each character of the first two planes, and its tokens beyond one as bits.
CHARACTERS = table("c-rk<iGt)d5&iXt<lR|zrZZU}+#y^EFhC$)I^TzHNw#du)?wNGYL0GSI!dKdJyl5tmgy&mOJYLJNoYs)A)3?eNBdm$C#CGpH$VMT!#4;qo9&RjdRlu@2qQ%?T<wZyl()Sg`{x1Ud1xsb={1)u^<O621F}gBZizuaguHKCQN5|-*{H4ySpiYXp;NKzDXB!NFe|WF;8xy+5@XSw=r2#XV?I90;NAPDr*|Koe){qG{d@8B{^j<??TeS!+so^hpKiD6;H9G5&u*`;ug}%r?dQMv>X*Oz^_O4$=C{B5{nvl^=8u2+^I!h@?RS6s`qQVEzu#VN{}A84J-@vB^w019_3!V$7yo(Q%$Db;XYu@2J@>wTw*LEA9ku74#ed&Ee5^m;3DKVIo_g!PRChF=)qQ<>;$wCB!*KkeK34RD_`x9k+M8bbw+uzd-oA!hbP5Qb-C)p}qLVwN)fQCwtmw-^M$jhFJNhL_CMDr~(j&bM&swDh(?d0=L+Md9xb&8U;%d=S+_qbm_$v3pyY;7cl+EuNm8IK#CnXoTD;=u;=-MMy{^EfAMU47m?#uvrBC8w7kc00Ik#SZk4*f60=vSKG$~w_<Qc(S_viw|ro~_L!J-M8omlEsHwF#cl11;EW%N~S`Y(7NqzrxaBHZjBl*@Ce~HX$E_L||obCBBHn{1g|GB@){pn?i{t`}48!|CxkCutTv+lY+L_M&Fa^f)vBVcXuc|%+z}p)jic$BVVkSRd*iB)?YM*I==kK7}=b5_IqVgNdNK6rV;^JXz3P3p*OAN7)Cj&$H%_-9^*qf&o!5}=&lr{FkI!c9!J>xj|<@dQg_Z{)L#%<?>31+bi5q0mUYfu0h+^_RkAN$Uqsnfx=CVGSS<$_j@oGq!bIFRI_kpDzs}DiR;}JP{MOkO<lBFp@v6vk#E-?lQ25{4$sOx4pUbXLqnVTh#5gd=Lu%DzJgk1irTI!&y8p%*)-7d@5Ez4nG9ZEey2`9C!s@@Jp7hwk56D1+XM;Kamnc(#G;F{7jh{~Xk;r;K0r~VYacIw;!R9$=ons{&k*hwA>w;m!3@6bWXut&bLdE1NJI)MYH^H+OoUZE`818p5|3%#>bRC9P840*+rN;k{5jNjyp$t)`&;m}ilWNM$V%-i=217KyDnVB<Gn}=L*ar-DtAq_BdT1~`T)|*wBEY2>Zn<RMXH3RK*N}xl?V0X$^}kd%)iJxxmF`4)*j!MOs3tt@LBWO;)H5j3n0ON7SrL5}s&D=I^f6i=(sxd+yQ;X&_DfTtyBw-s6!)SO_xoMm%chd|LN-B^)m_!^y=d<*i?aDzG>?e-KKWy9Zxr?Ig}BR=0RE;d)lGNRb&PAqyjz|9y^-VUL#-?6?AM~Yt(eTI741A-vDf~k|DQe~w!uXTMgM=svO@nq^$dylpZNbO-B>(y?c<HrLdNj_=f?Uxj77%(bG#(}r%lK<ApR%*C;lgqEyVxV!~dG2R5{0V=eNEx9QygO@68PUgP8cX7b4q~2T)se4xu~lCeMz%=H|9<Mm#4l@mVV$8s^t}tVQC%x&?zu*I^y{Qg~;W9oRPPEH-z9^#?G|!K4w9M}#wu#MWLaO*&1_?zFS4)x?q$=GR*|g|`8d7~bjbhofC0HgO+2nh4_!mZGgUz>d&AShSSV0}xg%Ik!Oz_S6Jsa(ZwQFx7uh`&3y(ZHUXjVq7<NsE_%Iz(gN=f?dYD-{c;zeYO3Ud^r@c{4lp)wP{N@7aKEUKJ5457$MrA{`Y1FpC`8#1gT_mG~QVZCt%4K4ZmFGOiC!T^|vYU<lOo%_x*`S@M=0L+j}59n;v@BFl||9DVyk5teB&RODSgL@2vRW%|=~Xsf}IB3O$+;m>(`@gdWi(VOf6nSmwZD--NxH;FK-w^9DZ6vuT3EyHOCT-+H8q4cDS;D_^Y<x>Ep7%?<0s0TyHh_9;KOOc7vrt76q|MTE(!S!>zF)U{8gxz2wfpzLO6P$HKSK$}k4hP-C>Cw0@{SQZl-OvQ%6O}9d@O<&n+vtj7Zpb2dgpTJrxj7?*>jVD;27ll>8k|IMa>uLKqfkhJ}O|L!k{sqXn1~><UqtAc(kD>_v3L-44Hbm}F5bGY@U<w~QBoj$`nVW0du~takul=WwqI8<z@&djW=urI`O^$JZaP3YAvG9M&_FGVOSVaOsXI5~v{^JUy0$URPM&8l!|EWex!$X3NV|c~`&~f^Ih&K$&9;{D~z>eN`Sw=Vm|IJA!94DJsvcz0eHe%M?j*Q@p$8c=pICNAWe%O=u3SDuvZ`_>;SdXNP+)4-9|2SBm1btn0ej4sdd*K4h7mYOodY~(89T<Cf2Vb`De=A+&33T`bE$-BodCZh$&_&Yu|2IUvCe=#`-X(xltLcnN@u95kT=8#a^A|{6{}bDv!P|e|`uhaskGTHdRrsPB`#7!q1zF>1MqzI=nDF2OO6d6i@FP8pox#mOoqpeO*c)@S(fDYSb0k?cmuv}7#7RD2Hc)G4=00<<KC#`wUyYtne`ck9_B0v9D7xA{9}o8=VFh=(W|)o@qhou-sF(z}CI|k3dfL*H2rRz{(SLT~f9-XnVe)^N{r}E@9}ZgIm}39GZCwX}RSGux>=APqnK8u?E+cH52A^B4wy=Z{eh_D;LArm#k4W!8bT+pR&|i71qQT7C8QqbSU<Fg2@sEMu{}^#nGi0p}*e^;%VhbrV`-}Vk?JS!(LjU=9d?eDJ(X<#6l%M<mAHIJ~ej^L_|0i+(f7*n{)1J4Va{qs~{QEb5a{vGH2nYB7KU<g1pLtktM&lUh7W4rmns3@$Twna3I$$C+Kd(44^ZkGB*`1-^rky{2Ec_p;eH}K+x6c!Laz2OnsTi(m*FdqO@xPmwKTZFqsr-0QJC?nh+7^!SptJrEVfc@O^sj#u(sBNC-wu@$d*sx9$Rz$RHU5jm|CBa;$OW*zW07w_zVA4BR{TW#e+~S<<ypw-JHlcb`3MkS5?d$78b6TH_`7!t2y6tf#BU}q=>PYaf5~tTey^%bJs0bvcagXqFvC}DcurtNXJMQFXiLXh(yxf1|8w&HL*}sl%g_Jst3xiSlrK2XnB)BA(er1F|4&f1o%4T4ray`Q&r(oC=>G>TFQNZGllkkjkAJzAKlS?mv)UiKFkV0qnxp?H_$EU;<4*_{h~Y>i5{X12o!1QE`u}U<|D0r!W^#J`e<heg`C%KJ4gYif|9OOi>;KuMNpaeX{{M#*bo&2^|B3&J|2d`;|I;SqfKL4XVEDg%2a<|dQ2{Zs3omId8K+S{<r+Ez^$sy%zJ|@RVgynvgH+izasIOXMOPk-3Z|tcRW|B{*ljxXMQCqog1*+H;fYX-LfTq(n?(wv$}n>>OQ5}GL~2hp-_`3wq``1GNkKN}n#>g&+m|*Ck4T|6g(eNIa*ew2&5cHjn)>fRcSm*0{ob6?{+f?s`0oEYNUX0}To>zs3O(hzVqN9B3Ibil$H|N7iBa>rP*HQNCTY#Yo}ART1sR{!OSD#?PP(M}-%(kXlXJQVtz7d8y;Fjve|3F0g#N8^?b`qIkCrw-N3#KZ(C!%CDO8J+x+sl%v~yZ5ivGu*IP~<Usg3U$f3A^I5n5rRP}|A+cXS$M@BW*w;2T~M*k4>%2Bwf2pR#S3Rzo%^j+7tqKk+~DKk*y!Kk+~DKk@(L;r}xU2mSx-(xf=;MgRXp3OfD&#Q((q#Qz-AiT`O6azH2kC;lh?r&1$Zi2sTIiT{cJiT{cJNyPue|Fj9&2E_lw|HS_!vW57c_@CXF_@DTn`2QjbfMYuGKW##`0r5ZaKk+}68reepPyEkrO#Dy$PyA2(PyA2(Pn(c!K>SbqPyA0kLn8hs{%1EnGyX3UlJtC5dZrPyK+&>3uuxk5N0%a5Z9VC-eAy`j(nFHv1$ahc8)T}|XY^kNMUls_R-Q~aBs&zlG$~4Z$&6$~CXg{nL625Dd7|3W|4;uv{r{ZPr~jWmAx`Mi|4;uv{r^;IWDEWO^#9ZUe|`Ty@jvlD@ju6O;(ywN9MFmXiT{cJsnp08;(y|Q;(y|Q;(y|Q;(y|Q;(ywNYy;wd;(y|Q64^rhPyEkre181T_5WP||Iq9Ixu%cn|G6fV3;MYJpX>j*{+~*XY~lKUuK(xy{|8zBPyA2(PyEj@o%o+NAqRBgf8u}Qe=0Syh4`QNpZNd!_@D9rjQ?l+KV$kB|Ie6E2J|uhpYi{U|EE$TTNwY(_<zR#Gyb3cfBOIF|EK?-{(t&}*ar0f)BjKZKZ$Ii|DXPUc4PYg>HlA%viw|A9RGitIQ{?h|9cQ(kPMejRYKW*jMJ6Fp$t=C#SEu}wG!23l!5C`QY30WwScfveI3n5^R4-7PV}c9=E*(1nf`zJ|LN!^Tj>9%|DXQ<$MgRa|L4Yf#{U!l=fM}o|I;R98(g4JjQ=P8r&1$Z*j~i{qqOZV3pEEVTknQ`kF2j(33N%I{nz<phWkbL(;b^$mHPQQaUtzaqc;D(fO6?N@jvmuN1~d8W##6(gLhA0{&~QK7f9YH7?o1hMeAy<v#C8CzBOEFs4PosEl<z|tgbfUOplKL#laM%{THd}0M`7^C=BQ0|8oAs|HS{q{{*^Z3yJtYK-uX3zcl{;Kk$9nZU").decode("latin-1")
EXTRA = table("c-muNpa`%tPz)HE*%=`K!~rAh>Oc?(<p0<6+cQuL005*X0u2")
NOT_CYRILLIC = table("c-jHd04@Ij0RjUA1qKHQ2?`4g4Gs?w5fT#=6&4p585$cL9UdPbAtECrB_<~*DJm;0EiNxGF)}kWH8wXmIXXK$Jw87`K|(`BMMg(RNlHshO-@fxQBqS>RaRG6Sz23MU0z>cVPa!sWoBn+X=-b1ZEkOHadLBXb#`}nd3t+%eSUv{f`f#zv$VCgx45~wyS%-=zrex5!^FkL$H>Xb%goKr&(P7*)6~`0*Vx(G+uYsW-{9fm<K*S$=jiF`>+J3B@9^>R^Yr!h_xSnx`~3a>|GEHU!2")
