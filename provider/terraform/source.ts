/** The provider's address in configurations, as `required_providers` names it. */
export const SOURCE = "gatehouse-access/gatehouse";
