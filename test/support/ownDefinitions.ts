import { definitions } from "../../provider/resources/index.ts";
import { isSparse } from "../projects.ts";

/** The resources that need a server of version 0.27 or later. */
export const NEWER = ["AccessPolicy", "ServiceAccount", "InstallKey"];

/** The resources that only this project's server has. */
export const OWN_ONLY = ["TrustedWorkload"];

/** The definitions of the resources whose objects the service of the tests has. */
export const ownDefinitions = definitions.filter(
  ({ name }) => !NEWER.includes(name) && !(isSparse && OWN_ONLY.includes(name)),
);
