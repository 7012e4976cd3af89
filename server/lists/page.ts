/** The page that a list's query asks for. */
interface PageQuery {
  readonly page: number;
  readonly per_page: number;
}

/** Where the rows of a page begin, and how many it has, as Prisma is asked for them. */
export const rowsOf = ({ page, per_page: perPage }: PageQuery): { skip: number; take: number } => ({
  skip: (page - 1) * perPage,
  take: perPage,
});
