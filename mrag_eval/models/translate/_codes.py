"""Language codes of each backend, from the BCP 47 codes used everywhere else."""

from __future__ import annotations

from collections.abc import Mapping

from mrag_eval.core import normalize_language

# FLORES-200 labels, which NLLB takes (NLLB Team, No Language Left Behind, 2022, Table 1). Of several varieties
# of a language, the standard one; of its scripts, the usual one without a script in the code.
_FLORES = """
ace-Arab ace_Arab|bjn-Arab bjn_Arab|kr-Arab knc_Arab|ks-Deva kas_Deva|sat-Beng sat_Beng|taq-Tfng taq_Tfng
nn nno_Latn|prs prs_Arab|ace ace_Latn
af afr_Latn|ak aka_Latn|am amh_Ethi|ar arb_Arab|as asm_Beng|ast ast_Latn|awa awa_Deva|ay ayr_Latn
az azj_Latn|azb azb_Arab|ba bak_Cyrl|ban ban_Latn|be bel_Cyrl|bem bem_Latn|bg bul_Cyrl|bho bho_Deva|bjn bjn_Latn
bm bam_Latn|bn ben_Beng|bo bod_Tibt|bs bos_Latn|bug bug_Latn|ca cat_Latn|ceb ceb_Latn|cjk cjk_Latn|ckb ckb_Arab
crh crh_Latn|cs ces_Latn|cy cym_Latn|da dan_Latn|de deu_Latn|dik dik_Latn|din dik_Latn|dyu dyu_Latn|dz dzo_Tibt
ee ewe_Latn|el ell_Grek|en eng_Latn|eo epo_Latn|es spa_Latn|et est_Latn|eu eus_Latn|fa pes_Arab|ff fuv_Latn
fi fin_Latn|fil tgl_Latn|fj fij_Latn|fo fao_Latn|fon fon_Latn|fr fra_Latn|fur fur_Latn|fuv fuv_Latn|ga gle_Latn
gd gla_Latn|gl glg_Latn|gn grn_Latn|gu guj_Gujr|ha hau_Latn|he heb_Hebr|hi hin_Deva|hne hne_Deva|hr hrv_Latn
ht hat_Latn|hu hun_Latn|hy hye_Armn|id ind_Latn|ig ibo_Latn|ilo ilo_Latn|is isl_Latn|it ita_Latn|ja jpn_Jpan
jv jav_Latn|ka kat_Geor|kab kab_Latn|kac kac_Latn|kam kam_Latn|kbp kbp_Latn|kea kea_Latn|kg kon_Latn|ki kik_Latn
kk kaz_Cyrl|km khm_Khmr|kmb kmb_Latn|kn kan_Knda|ko kor_Hang|kr knc_Latn|ks kas_Arab|ku kmr_Latn|ky kir_Cyrl
lb ltz_Latn|lg lug_Latn|li lim_Latn|lij lij_Latn|lmo lmo_Latn|ln lin_Latn|lo lao_Laoo|lt lit_Latn|ltg ltg_Latn
lua lua_Latn|luo luo_Latn|lus lus_Latn|lv lvs_Latn|mag mag_Deva|mai mai_Deva|mg plt_Latn|mi mri_Latn|min min_Latn
mk mkd_Cyrl|ml mal_Mlym|mn khk_Cyrl|mni mni_Beng|mos mos_Latn|mr mar_Deva|ms zsm_Latn|mt mlt_Latn|my mya_Mymr
nb nob_Latn|ne npi_Deva|nl nld_Latn|nso nso_Latn|nus nus_Latn|ny nya_Latn|oc oci_Latn|om gaz_Latn|or ory_Orya
pa pan_Guru|pag pag_Latn|pap pap_Latn|pbt pbt_Arab|pl pol_Latn|ps pbt_Arab|pt por_Latn|qu quy_Latn|quy quy_Latn
rn run_Latn|ro ron_Latn|ru rus_Cyrl|rw kin_Latn|sa san_Deva|sat sat_Beng|sc srd_Latn|scn scn_Latn|sd snd_Arab
sg sag_Latn|shn shn_Mymr|si sin_Sinh|sk slk_Latn|sl slv_Latn|sm smo_Latn|sn sna_Latn|so som_Latn|sq als_Latn
sr srp_Cyrl|ss ssw_Latn|st sot_Latn|su sun_Latn|sv swe_Latn|sw swh_Latn|szl szl_Latn|ta tam_Taml|taq taq_Latn
te tel_Telu|tg tgk_Cyrl|th tha_Thai|ti tir_Ethi|tk tuk_Latn|tn tsn_Latn|tpi tpi_Latn|tr tur_Latn|ts tso_Latn
tt tat_Cyrl|tum tum_Latn|tw twi_Latn|tzm tzm_Tfng|ug uig_Arab|uk ukr_Cyrl|umb umb_Latn|ur urd_Arab|uz uzn_Latn
vec vec_Latn|vi vie_Latn|war war_Latn|wo wol_Latn|xh xho_Latn|yi ydd_Hebr|yo yor_Latn|yue yue_Hant|zh zho_Hans
zh-Hans zho_Hans|zh-Hant zho_Hant|zu zul_Latn
"""
FLORES: Mapping[str, str] = dict(e.split() for e in _FLORES.replace("\n", "|").split("|") if e.strip())
# Google's are ISO 639-1 with a region where the script matters; all others are spelt like ours.
_GOOGLE: Mapping[str, str] = {"zh": "zh-CN", "zh-Hans": "zh-CN", "zh-Hant": "zh-TW", "nb": "no", "prs": "fa-AF"}


def flores(code: str) -> str | None:
    """Return the FLORES-200 label of a language (``ko``: ``kor_Hang``); None for one that NLLB lacks."""
    return FLORES.get(normalize_language(code))


def google(code: str) -> str:
    """Return the code for Google Cloud Translation (``zh``: ``zh-CN``)."""
    known = normalize_language(code)
    return _GOOGLE.get(known, known)
