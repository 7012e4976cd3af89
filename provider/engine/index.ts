export type { TargetOptions } from "./embedded/targets.ts";
export { UNSUPPORTED, type UnsupportedFeature } from "./embedded/unsupported.ts";
export * from "./errors.ts";
export { fieldDiff } from "./fieldDiff.ts";
export * from "./model.ts";
export { findOnPath, openStack } from "./openStack.ts";
export { type Project, readProject } from "./project/project.ts";
export { stackFilePath } from "./project/stackConfig.ts";
export type {
  DestroyOptions,
  PreviewOptions,
  RefreshRunOptions,
  Stack,
  StackOptions,
  StateResource,
  UpOptions,
} from "./stack.ts";
export { backendUrlOf } from "./state/backendUrl.ts";
export { OWN_TYPE, typeName, urnName, urnType } from "./urn.ts";
