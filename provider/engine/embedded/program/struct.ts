import structProto from "google-protobuf/google/protobuf/struct_pb.js";
import type { Props } from "../../value.ts";

/** Properties as a message. */
export type Struct = structProto.Struct;

/** Properties as a message. */
export function toStruct(props: Props): Struct {
  return structProto.Struct.fromJavaScript(props as Parameters<typeof structProto.Struct.fromJavaScript>[0]);
}

/** The properties in a message; none where it is missing. */
export function fromStruct(struct: Struct | undefined | null): Props {
  return (struct ? struct.toJavaScript() : {}) as Props;
}
