export * from "./errors.ts";
export { fieldDiff, refreshedFields, shownValues } from "./fieldDiff.ts";
export { findOnPath } from "./findOnPath.ts";
export * from "./model.ts";
export { openStack } from "./openStack.ts";
export { ENDING_SIGNALS, signalGroup, startInGroup } from "./processGroup.ts";
export { backendUrlOf } from "./project/chooseBackend.ts";
export { type Project, readProject } from "./project/project.ts";
export { stackFilePath } from "./project/stackConfig.ts";
export {
  type DestroyOptions,
  type PreviewOptions,
  parseStackName,
  type RefreshRunOptions,
  type Stack,
  type StackOptions,
  type StateResource,
  type UpOptions,
} from "./stack.ts";
export { isNoSuchFile, writeDurably } from "./state/durableFile.ts";
export type { TargetOptions } from "./targets.ts";
export { makeUrn, OWN_DYNAMIC, OWN_PLUGIN, ownTypeName, typeName, urnName, urnType } from "./urn.ts";
