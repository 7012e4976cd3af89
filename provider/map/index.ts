export { type AccessMapMeta, accessMapData } from "./accessMapData.ts";
export { accessMapHtml } from "./accessMapHtml.ts";
export type {
  AccessMapData,
  MapChange,
  MapDevice,
  MapEdge,
  MapGroup,
  MapKey,
  MapSubtitle,
} from "./data.ts";
