/** The page that a list request selects. */
interface PageQuery {
  readonly page: number;
  readonly per_page: number;
}

/** Returns the offset and the number of rows of a page, in Prisma's form. */
export const pageOf = ({ page, per_page: perPage }: PageQuery): { skip: number; take: number } => ({
  skip: (page - 1) * perPage,
  take: perPage,
});
