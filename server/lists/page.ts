/** The page that a list's query asks for. */
interface PageQuery {
  readonly page: number;
  readonly per_page: number;
}

/** The offset and the number of a page's rows, in Prisma's form. */
export const pageOf = ({ page, per_page: perPage }: PageQuery): { skip: number; take: number } => ({
  skip: (page - 1) * perPage,
  take: perPage,
});
