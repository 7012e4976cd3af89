import { definitions } from "../../provider/resources/index.ts";

/** The resources that need a server of version 0.27 or later. */
export const NEWER = ["AccessPolicy", "ServiceAccount", "InstallKey"];

/** The definitions of the resources whose objects this project's server has. */
export const ownDefinitions = definitions.filter(({ name }) => !NEWER.includes(name));
