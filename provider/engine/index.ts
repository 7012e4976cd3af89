export { backendUrlOf } from "./backendUrl.ts";
export * from "./errors.ts";
export { fieldDiff } from "./fieldDiff.ts";
export * from "./model.ts";
export { findOnPath, openStack } from "./openStack.ts";
export { type Project, readProject } from "./project.ts";
export type {
  DestroyOptions,
  PreviewOptions,
  RefreshRunOptions,
  Stack,
  StackOptions,
  StateResource,
  UpOptions,
} from "./stack.ts";
export { stackFilePath } from "./stackConfig.ts";
export type { TargetOptions } from "./targets.ts";
export { UNSUPPORTED, type UnsupportedFeature } from "./unsupported.ts";
export { OWN_TYPE, typeName, urnName, urnType } from "./urn.ts";
