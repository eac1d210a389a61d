"""The functions that a query may call: the ones that only compute, in the databases we speak to.

Everything else is refused by default, so that a function which reads files, sleeps, takes locks, talks to the network
or runs SQL out of a string needs not be known by name. Functions that sqlglot parses into a type of their own are
judged in the guard.
"""

from __future__ import annotations

from collections.abc import Mapping

_SQLITE = """
    abs acos acosh asin asinh atan atan2 atanh avg bm25 ceil ceiling char coalesce concat concat_ws cos cosh count
    cume_dist current_date current_time current_timestamp date datetime degrees dense_rank exp first_value floor
    format generate_series geopoly_area geopoly_contains_point glob group_concat hex highlight if ifnull iif instr
    json json_array json_array_length json_each json_error_position json_extract json_group_array json_group_object
    json_insert json_object json_patch json_pretty json_quote json_remove json_replace json_set json_tree json_type
    json_valid jsonb jsonb_array jsonb_each jsonb_extract jsonb_group_array jsonb_group_object jsonb_insert
    jsonb_object jsonb_patch jsonb_remove jsonb_replace jsonb_set jsonb_tree julianday lag last_value lead length
    like likelihood likely ln log log10 log2 lower ltrim match matchinfo max median min mod nth_value ntile nullif
    octet_length offsets percent_rank percentile percentile_cont percentile_disc pi pow power printf quote radians
    random randomblob rank regexp replace round row_number rtrim sign sin sinh snippet soundex sqlite_source_id
    sqlite_version sqrt stddev strftime string_agg substr substring sum tan tanh time timediff total trim trunc
    typeof unhex unicode unistr unistr_quote unixepoch unlikely upper variance zeroblob
"""

_DUCKDB = """
    abs acos acosh add age aggregate ago alias any_value apply approx_count_distinct approx_quantile approx_top_k
    arbitrary arg_max arg_max_null arg_max_nulls_last arg_min arg_min_null arg_min_nulls_last argmax argmin
    array_agg array_aggr array_aggregate array_append array_apply array_cat array_concat array_contains
    array_cosine_distance array_cosine_similarity array_cross_product array_distance array_distinct
    array_dot_product array_extract array_filter array_grade_up array_has array_has_all array_has_any array_indexof
    array_inner_product array_intersect array_length array_negative_dot_product array_negative_inner_product
    array_pop_back array_pop_front array_position array_prepend array_push_back array_push_front array_reduce
    array_resize array_reverse array_reverse_sort array_select array_slice array_sort array_to_json array_to_string
    array_transform array_unique array_value array_where array_zip ascii asin asinh atan atan2 atanh avg bar base64
    bin binom bit_and bit_count bit_length bit_or bit_position bit_xor bitstring bitstring_agg bool_and bool_or
    cardinality cbrt ceil ceiling century char_length character_length chr columns concat concat_ws contains corr
    cos cosh cot count count_if count_star countif covar_pop covar_samp cume_dist current_catalog current_database
    current_date current_localtime current_localtimestamp current_role current_schema current_schemas current_user
    damerau_levenshtein date_add date_diff date_part date_sub date_trunc datediff datepart datesub datetrunc day
    dayname dayofmonth dayofweek dayofyear days_in_month decade decimal_average decimal_division decode degrees
    dense_rank divide duckdb_columns duckdb_constraints duckdb_functions duckdb_keywords duckdb_tables duckdb_types
    duckdb_views editdist3 element_at encode ends_with entropy enum_code enum_first enum_last enum_range
    enum_range_boundary epoch epoch_ms epoch_ns epoch_us equi_width_bins era even exp factorial fdiv fill filter
    first first_value flatten floor fmod format format_bytes format_type from_base64 from_binary from_hex from_json
    from_json_strict fsum gamma gcd gen_random_uuid generate_series generate_subscripts geomean geometric_mean
    get_bit get_current_time get_current_timestamp grade_up greatest greatest_common_divisor group_concat hamming
    hash hex histogram histogram_exact histogram_values hour if instr isfinite isinf isnan isodow isoyear jaccard
    jaro_similarity jaro_winkler_similarity json json_array json_array_length json_contains json_deep_merge
    json_each json_exists json_extract json_extract_path json_extract_path_text json_extract_string json_group_array
    json_group_object json_group_structure json_insert json_keys json_merge_patch json_merge_patch_diff json_object
    json_pretty json_quote json_remove json_replace json_set json_strip_nulls json_structure json_transform
    json_transform_strict json_tree json_type json_valid json_value julian kahan_sum kurtosis kurtosis_pop lag last
    last_day last_value lcase lcm lead least least_common_multiple left left_grapheme len length length_grapheme
    levenshtein lgamma list list_aggr list_aggregate list_any_value list_append list_apply
    list_approx_count_distinct list_avg list_bit_and list_bit_or list_bit_xor list_bool_and list_bool_or list_cat
    list_concat list_contains list_cosine_distance list_cosine_similarity list_count list_distance list_distinct
    list_dot_product list_element list_entropy list_extract list_filter list_first list_grade_up list_has
    list_has_all list_has_any list_histogram list_indexof list_inner_product list_intersect list_kurtosis
    list_kurtosis_pop list_last list_mad list_max list_median list_min list_mode list_negative_dot_product
    list_negative_inner_product list_pack list_position list_prepend list_product list_reduce list_resize
    list_reverse list_reverse_sort list_select list_sem list_skewness list_slice list_sort list_stddev_pop
    list_stddev_samp list_string_agg list_sum list_transform list_unique list_value list_var_pop list_var_samp
    list_where list_zip listagg ln log log10 log2 lower lpad ltrim lttb mad make_date make_time make_timestamp
    make_timestamp_ms make_timestamp_ns make_timestamptz map map_concat map_contains map_contains_entry
    map_contains_value map_entries map_extract map_extract_value map_from_entries map_keys map_values max max_by md5
    md5_number mean median microsecond millennium millisecond min min_by minute mismatches mod mode month monthname
    multiply nanosecond nextafter nfc_normalize normalized_interval now nth_value ntile nullif octet_length ord
    overlay parse_dirname parse_dirpath parse_filename parse_formatted_bytes parse_path path_join percent_rank
    pg_size_pretty pg_timezone_names pg_typeof pi position pow power prefix printf product quantile quantile_cont
    quantile_disc quarter radians random range rank rank_dense reduce regexp_extract regexp_extract_all
    regexp_full_match regexp_matches regexp_replace regexp_split_to_array regexp_split_to_table regr_avgx regr_avgy
    regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy repeat repeat_row replace
    reservoir_quantile reverse right right_grapheme round round_even roundbankers row row_number row_to_json rpad
    rtrim second sem set_bit sha1 sha256 sign signbit sin sinh skewness split split_part sqrt st_asbinary
    st_asgeojson st_astext st_aswkb st_aswkt st_crs st_geomfromgeojson st_geomfromwkb st_intersects_extent st_setcrs
    starts_with stddev stddev_pop stddev_samp str_split str_split_regex strftime string_agg string_split
    string_split_regex string_to_array strip_accents strlen strpos strptime struct_concat struct_contains
    struct_extract struct_extract_at struct_has struct_indexof struct_insert struct_keys struct_pack struct_position
    struct_update struct_values substr substring substring_grapheme subtract suffix sum sum_no_overflow sumkahan
    summary switch tan tanh time_bucket timezone timezone_hour timezone_minute to_base to_base64
    to_binary to_centuries to_days to_decades to_hex to_hours to_json to_microseconds to_millennia to_milliseconds
    to_minutes to_months to_quarters to_seconds to_timestamp to_weeks to_years today transaction_timestamp translate
    trim trunc try_strptime typeof ucase unbin unhex unicode union_extract union_tag union_value unnest unpivot_list
    upper url_decode url_encode uuid uuid_extract_timestamp uuid_extract_version uuidv4 uuidv7 var_pop var_samp
    variance variant_array_length variant_contains variant_exists variant_extract variant_extract_string
    variant_group_array variant_group_object variant_keys variant_type variant_typeof version vertex_extract wavg
    week weekday weekofyear weighted_avg xor year yearweek
"""

_POSTGRESQL = """
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

_MYSQL = """
    abs acos add_months adddate addtime any_value ascii asin atan atan2 avg bin bin_to_uuid bit_and bit_count
    bit_length bit_or bit_xor cast ceil ceiling char char_length character_length charset chr coalesce
    coercibility collation concat concat_ws conv convert convert_tz cos cot count crc32 crc32c cume_dist
    curdate current_date current_role current_time current_timestamp current_user curtime database date
    date_add date_format date_sub datediff day dayname dayofmonth dayofweek dayofyear degrees dense_rank elt
    exp export_set extract field find_in_set first_value floor format format_bytes from_base64 from_days
    from_unixtime geometrycollection geomfromtext get_format greatest group_concat grouping hex hour if ifnull
    inet6_aton inet6_ntoa inet_aton inet_ntoa insert instr interval is_ipv4 is_ipv6 is_uuid isnull json_array
    json_array_append json_array_insert json_array_intersect json_arrayagg json_compact json_contains
    json_contains_path json_depth json_detailed json_equals json_exists json_extract json_insert json_keys
    json_length json_loose json_merge json_merge_patch json_merge_preserve json_normalize json_object
    json_object_filter_keys json_object_to_array json_objectagg json_overlaps json_pretty json_query
    json_quote json_remove json_replace json_schema_valid json_search json_set json_storage_size json_table
    json_type json_unquote json_valid json_value lag last_day last_value lcase lead least left length lengthb
    linestring ln localtime localtimestamp locate log log10 log2 lower lpad ltrim make_set makedate maketime
    max mbrcontains mbrcoveredby mbrcovers mbrdisjoint mbrequals mbrintersects mbroverlaps mbrtouches
    mbrwithin md5 median microsecond mid min minute mod month monthname multilinestring multipoint
    multipolygon natural_sort_key now nth_value ntile nullif nvl nvl2 oct octet_length ord percent_rank
    percentile_cont percentile_disc period_add period_diff pi point polygon position pow power quarter quote
    radians rand rank regexp regexp_instr regexp_like regexp_replace regexp_substr repeat replace reverse
    right round row row_number rpad rtrim schema sec_to_time second sformat sha sha1 sha2 sign sin soundex
    space sqrt st_distance st_distance_sphere std stddev stddev_pop stddev_samp str_to_date strcmp subdate
    substr substring substring_index subtime sum sysdate tan time time_format time_to_sec timediff timestamp
    timestampadd timestampdiff to_base64 to_char to_days to_seconds trim truncate ucase unhex unix_timestamp
    upper utc_date utc_time utc_timestamp uuid uuid_short uuid_to_bin var_pop var_samp variance version week
    weekday weekofyear weight_string year yearweek
"""

_TSQL = """
    abs ascii atn2 avg cast ceiling char charindex choose coalesce concat concat_ws convert count count_big
    cume_dist current_timestamp dateadd datediff datediff_big datefromparts datename datepart datetime2fromparts
    datetimefromparts datetrunc day degrees dense_rank difference eomonth exp first_value floor format
    generate_series getdate getutcdate greatest grouping hashbytes iif isdate isjson isnull isnumeric json_array
    json_modify json_object json_path_exists json_query json_value lag last_value lead least left len log log10
    lower ltrim max min month nchar newid ntile nullif openjson parse patindex percent_rank percentile_cont
    percentile_disc pi power quotename radians rand rank replace replicate reverse right round row_number rtrim sign
    sin soundex space sqrt square stdev stdevp str string_agg string_escape string_split stuff substring sum
    switchoffset sysdatetime sysdatetimeoffset sysutcdatetime tan timefromparts todatetimeoffset translate trim
    try_cast try_convert try_parse unicode upper var varp year
"""

ALLOWED: Mapping[str, frozenset[str]] = {
    "sqlite": frozenset(_SQLITE.split()),
    "duckdb": frozenset(_DUCKDB.split()),
    "postgres": frozenset(_POSTGRESQL.split()),
    "mysql": frozenset(_MYSQL.split()),
    "tsql": frozenset(_TSQL.split()),
}
"""Names by sqlglot's name of the dialect."""

PREFIXES: Mapping[str, tuple[str, ...]] = {"postgres": ("st_", "h3_"), "duckdb": ("st_", "h3_"), "mysql": ("st_",)}
"""Families of functions that extensions bring and that only compute (geometry)."""

_NEVER = """
    st_read st_read_meta st_readosm st_readshp st_drivers st_createoverview st_fromgdalraster
    load_extension readfile writefile edit fts3_tokenizer getenv query query_table read_text read_blob glob
    json_execute_serialized_sql dblink dblink_exec dblink_connect set_config lo_import lo_export pg_sleep pg_read_file
    load_file benchmark sleep get_lock release_lock release_all_locks is_free_lock is_used_lock master_pos_wait
    source_pos_wait wait_for_executed_gtid_set last_insert_id nextval setval name_const
    openrowset openquery opendatasource xp_cmdshell
"""

NEVER = frozenset(_NEVER.split())
"""Names that stay refused even where a database defines a function so called."""
