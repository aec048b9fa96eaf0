"""Language codes as each backend has them, from the BCP 47 codes used everywhere else."""

from __future__ import annotations

from collections.abc import Mapping

from mrag_eval.core import base_language, normalize_language

# FLORES-200 labels, which NLLB takes (NLLB Team, No Language Left Behind, 2022, Table 1). Where it has several
# varieties, the standard one; Tongan is not among its languages.
_FLORES = """
am amh_Ethi|ar arb_Arab|as asm_Beng|az azj_Latn|be bel_Cyrl|bg bul_Cyrl|bn ben_Beng|bs bos_Latn|ca cat_Latn|cs ces_Latn
da dan_Latn|de deu_Latn|dz dzo_Tibt|el ell_Grek|en eng_Latn|es spa_Latn|et est_Latn|fa pes_Arab|fi fin_Latn|fil tgl_Latn
fr fra_Latn|ha hau_Latn|he heb_Hebr|hi hin_Deva|hr hrv_Latn|ht hat_Latn|hu hun_Latn|hy hye_Armn|id ind_Latn|is isl_Latn
it ita_Latn|ja jpn_Jpan|ka kat_Geor|kk kaz_Cyrl|km khm_Khmr|ko kor_Hang|ky kir_Cyrl|lo lao_Laoo|lt lit_Latn|lv lvs_Latn
mg plt_Latn|mk mkd_Cyrl|mn khk_Cyrl|mr mar_Deva|ms zsm_Latn|my mya_Mymr|nb nob_Latn|ne npi_Deva|nl nld_Latn|pa pan_Guru
pl pol_Latn|pt por_Latn|ro ron_Latn|ru rus_Cyrl|si sin_Sinh|sk slk_Latn|sl slv_Latn|sn sna_Latn|so som_Latn|sq als_Latn
sr srp_Cyrl|su sun_Latn|sv swe_Latn|sw swh_Latn|ta tam_Taml|te tel_Telu|tg tgk_Cyrl|th tha_Thai|ti tir_Ethi|tr tur_Latn
uk ukr_Cyrl|ur urd_Arab|uz uzn_Latn|vi vie_Latn|yo yor_Latn|yue yue_Hant|zh zho_Hans|zh-Hans zho_Hans|zh-Hant zho_Hant
zu zul_Latn
"""
FLORES: Mapping[str, str] = dict(e.split() for e in _FLORES.replace("\n", "|").split("|") if e.strip())
# Google's are ISO 639-1 with a region where the script matters; what is not here is spelt as we spell it.
_GOOGLE: Mapping[str, str] = {"zh": "zh-CN", "zh-Hans": "zh-CN", "zh-Hant": "zh-TW", "nb": "no"}


def flores(code: str) -> str | None:
    """The FLORES-200 label of a language (``ko``: ``kor_Hang``); None for one that NLLB does not have."""
    known = normalize_language(code)
    return FLORES.get(known) or FLORES.get(base_language(known))


def google(code: str) -> str:
    """The code that Google Cloud Translation takes (``zh``: ``zh-CN``)."""
    known = normalize_language(code)
    return _GOOGLE.get(known, known)
