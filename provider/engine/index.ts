export * from "./errors.ts";
export * from "./model.ts";
export { findOnPath, openStack } from "./openStack.ts";
export type {
  DestroyOptions,
  PreviewOptions,
  RefreshRunOptions,
  Stack,
  StackOptions,
  UpOptions,
} from "./stack.ts";
export type { TargetOptions } from "./targets.ts";
export { UNSUPPORTED, type UnsupportedFeature } from "./unsupported.ts";
export { typeName } from "./urn.ts";
