// What charts need of Vega: no maps, trees, forces or word clouds, and nothing that reads an address.

import { transforms } from "vega-dataflow";
import * as encode from "vega-encode";
import * as common from "vega-transforms";
import { extend } from "vega-util";
import * as view from "vega-view-transforms";

extend(transforms, common, view, encode);

export { expressionInterpreter } from "vega-interpreter";
export { compile } from "vega-lite";
export { parse } from "vega-parser";
export { View } from "vega-view";
