import type { Page } from '#shared/core/page.ts'

/** A page of a list, as every list answers it. */
export const presentPage = <Row, Item>(
  { rows, next }: Page<Row>,
  presentRow: (row: Row, index: number) => Item,
) => ({
  items: rows.map((row, index) => presentRow(row, index)),
  has_more: next !== null,
  next_cursor: next,
})
