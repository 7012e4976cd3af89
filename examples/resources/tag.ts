import { Tag } from "@gatehouse-access/provider";

// A change to the name renames the tag on all devices and in all filters.
export const edge = new Tag("edge", { name: "edge" });
