import { Tag } from "@gatehouse-access/provider";

// Renamed here, it is renamed at once on every device and in every filter.
export const edge = new Tag("edge", { name: "edge" });
