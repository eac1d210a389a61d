"""PostgreSQL, on a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longthread.tools.analysis.dialects.dialect import SYSTEM_SCHEMAS, SqlDialect

if TYPE_CHECKING:
    from longthread.tools.analysis.address import SourceUrl
    from longthread.tools.analysis.engine import Engine
    from longthread.tools.analysis.limits import Limits

_FUNCTIONS = """
    abbrev abs acldefault acos acosd acosh age akeys all any_value approx_percentile area array_agg array_append
    array_cat array_dims array_fill array_lower array_ndims array_position array_positions array_prepend
    array_remove array_replace array_reverse array_sample array_shuffle array_sort array_to_json array_to_string
    array_to_tsvector array_upper ascii asin asind asinh atan atan2 atan2d atand atanh avals avg bit bit_and
    bit_count bit_length bit_or bit_xor bittypmodin bool bool_and bool_or boolsend box broadcast btrim cardinality
    casefold cbrt ceil ceiling center char char_length character_length charsend chr cidr cidsend circle
    clock_timestamp coalesce col_description concat concat_ws convert convert_from convert_to corr cos cosd cosh
    cosine_distance cot cotd count covar_pop covar_samp crc32 crc32c cube cume_dist current_database current_schema
    current_schemas current_user date date_add date_bin date_part date_subtract date_trunc datemultirange daterange
    daterange_canonical decode degrees dense_rank dexp diagonal diameter difference div dlog1 dlog10 dmetaphone
    dround dtrunc earth_distance encode enum_first enum_last enum_range erf erfc every exp extract factorial family
    first first_value float8 floor format format_type gamma gcd gen_random_uuid generate_series generate_subscripts
    get_bit get_byte get_current_ts_config greatest grouping height host hostmask hstore_to_json icu_unicode_version
    initcap inner_product int4 int4multirange int4range int8 int8multirange int8range interval intervaltypmodin
    is_normalized isclosed isempty isfinite ishorizontal isparallel isperp isvertical json_agg json_agg_strict
    json_array_elements json_array_elements_text json_array_length json_build_array json_build_object json_each
    json_each_text json_object json_object_agg json_object_agg_strict json_object_agg_unique
    json_object_agg_unique_strict json_object_keys json_populate_record json_populate_recordset json_strip_nulls
    json_table json_to_record json_to_recordset json_to_tsvector json_typeof jsonb_agg jsonb_agg_strict
    jsonb_array_elements jsonb_array_elements_text jsonb_array_length jsonb_build_array jsonb_build_object
    jsonb_each jsonb_each_text jsonb_insert jsonb_object jsonb_object_agg jsonb_object_agg_strict
    jsonb_object_agg_unique jsonb_object_agg_unique_strict jsonb_object_keys jsonb_path_exists jsonb_path_exists_tz
    jsonb_path_match jsonb_path_match_tz jsonb_path_query jsonb_path_query_array jsonb_path_query_array_tz
    jsonb_path_query_first jsonb_path_query_first_tz jsonb_path_query_tz jsonb_populate_record
    jsonb_populate_record_valid jsonb_populate_recordset jsonb_pretty jsonb_set jsonb_set_lax jsonb_strip_nulls
    jsonb_to_record jsonb_to_recordset jsonb_to_tsvector jsonb_typeof justify_days justify_hours justify_interval
    l1_distance l2_distance lag last last_value lcm lead least left length levenshtein lgamma like like_escape line
    ll_to_earth ln log log10 lower lower_inc lower_inf lpad lseg ltrim make_date make_interval make_time
    make_timestamp make_timestamptz masklen max md5 metaphone min min_scale mod mode money multirange name namesend
    netmask network normalize notlike now npoints nth_value ntile nullif num_nonnulls num_nulls numeric
    numerictypmodin nummultirange numnode numrange obj_description octet_length oid oidsend overlaps overlay
    parse_ident path pclose percent_rank percentile_cont percentile_disc pg_get_constraintdef pg_get_indexdef
    pg_get_viewdef pg_relation_size pg_size_pretty pg_table_size pg_total_relation_size pg_typeof phraseto_tsquery
    pi plainto_tsquery point polygon popen position pow power querytree quote_ident quote_literal quote_nullable
    radians radius random random_normal range_agg range_intersect_agg range_merge rank regclass regclasssend
    regcollationsend regconfigsend regdictionarysend regexp_count regexp_instr regexp_like regexp_match
    regexp_matches regexp_replace regexp_split_to_array regexp_split_to_table regexp_substr regnamespacesend
    regoperatorsend regopersend regproceduresend regprocsend regr_avgx regr_avgy regr_count regr_intercept regr_r2
    regr_slope regr_sxx regr_sxy regr_syy regrolesend repeat replace reverse right round row row_number row_to_json rpad
    rtrim scale set_bit set_byte set_masklen setweight sha224 sha256 sha384 sha512 sign similar_escape
    similar_to_escape similarity sin sind sinh slice slope soundex split_part sqrt starts_with statement_timestamp
    stddev stddev_pop stddev_samp strict_word_similarity string_agg string_to_array string_to_table strip strpos
    substr substring sum tan tand tanh text textlen textsend time time_bucket timeofday timestamp timestamptypmodin
    timestamptz timestamptztypmodin timetypmodin timetz timetztypmodin timezone to_ascii to_bin to_char to_date
    to_hex to_json to_jsonb to_number to_oct to_timestamp to_tsquery to_tsvector transaction_timestamp translate
    trim_array trim_scale trunc ts_debug ts_delete ts_filter ts_headline ts_lexize ts_parse ts_rank ts_rank_cd
    ts_token_type tsmultirange tsrange tstzmultirange tstzrange unaccent unicode_assigned unicode_version unistr
    unknownsend unnest upper upper_inc upper_inf uuid_extract_timestamp uuid_extract_version uuid_generate_v4 uuidv4
    uuidv7 var_pop var_samp varchar varcharsend varchartypmodin variance vector_dims vector_norm version
    websearch_to_tsquery width width_bucket word_similarity xml xmlagg xmlcomment xmlexists xmltext xmlvalidate
    xpath xpath_exists
"""
_TABLES = """
    pg_class pg_namespace pg_attribute pg_type pg_tables pg_views pg_matviews pg_indexes pg_index pg_constraint
    pg_description pg_enum pg_attrdef pg_inherits pg_sequences pg_timezone_names pg_am pg_collation pg_range
    pg_partitioned_table
"""
READABLE = frozenset(_TABLES.split())
"""Tables of the catalog that a query may read."""


def is_of_catalog(name: str, schema: str) -> bool:
    """Return whether a table is one of PostgreSQL's catalog, which DuckDB has as well."""
    return schema == "pg_catalog" or name.startswith("pg_")


class _Postgresql(SqlDialect):
    name = "postgresql"
    sqlglot = "postgres"
    title = "PostgreSQL"
    rank = 1
    schemes = ("postgresql", "postgres")
    folds_names = True
    escapes_patterns = True
    date_part = "CAST(EXTRACT({part} FROM {column}) AS INTEGER)"
    modulo_in_limit = True
    functions = frozenset(_FUNCTIONS.split())
    function_families = ("st_", "h3_")
    fence = "OFFSET 0"
    # A type's name after a table's is a cast of its row.
    hidden_columns = frozenset(["ctid", "xmin", "xmax", "cmin", "cmax", "tableoid", "oid", "name", "text", "varchar"])
    names_items = False
    unknown_name = r'relation "(?P<table>[^"]+)" does not exist'
    ambiguous_name = r'column reference "(?P<column>[^"]+)" is ambiguous'

    def is_system(self, name: str, schema: str, catalog: str) -> bool:
        return name not in READABLE if is_of_catalog(name, schema) else schema in SYSTEM_SCHEMAS

    def open_server(self, url: SourceUrl, source: str, limits: Limits) -> Engine:
        from longthread.tools.analysis.engines.postgresql import PostgresqlEngine

        return PostgresqlEngine(url, source, limits)


DIALECT = _Postgresql()
