import structProto from "google-protobuf/google/protobuf/struct_pb.js";
import type { Props } from "../../value.ts";

/** A protobuf Struct of properties. */
export type Struct = structProto.Struct;

/** Properties as a protobuf Struct. */
export function toStruct(props: Props): Struct {
  return structProto.Struct.fromJavaScript(props as Parameters<typeof structProto.Struct.fromJavaScript>[0]);
}

/** Properties of a protobuf Struct; a missing Struct has none. */
export function fromStruct(struct: Struct | undefined | null): Props {
  return (struct ? struct.toJavaScript() : {}) as Props;
}
