import { useState } from 'preact/hooks'
import { html, renderComponent, type Children, type View } from '#api/console/app/html.ts'

/** A column of a table: what stands in a cell, and the number or text that it is sorted by. */
export type Column<Row> = {
  name: string
  cell: (row: Row) => Children
  value: (row: Row) => number | string
}

type Props<Row> = { columns: readonly Column<Row>[]; rows: readonly Row[] }

/** A table whose heads sort it: first from the largest number or the first word, then the other way round. */
export const sortedTable = <Row>(props: Props<Row>): View =>
  renderComponent(SortedTable, props as Props<unknown>)

function SortedTable({ columns, rows }: Props<unknown>): View {
  const [sort, setSort] = useState<{ name: string; isReversed: boolean }>()
  const column = columns.find(({ name }) => name === sort?.name)
  const sorted = column ? rows.toSorted((one, other) => compare(column, one, other)) : rows
  const shown = sort?.isReversed ? sorted.toReversed() : sorted
  const press = (name: string): void =>
    setSort({ name, isReversed: sort?.name === name && !sort.isReversed })
  const orderOf = ({ name, value }: Column<unknown>): string | undefined => {
    if (name !== sort?.name || !rows[0]) return undefined
    const isDescending = (typeof value(rows[0]) === 'number') !== sort.isReversed
    return isDescending ? 'descending' : 'ascending'
  }
  return html`<div class="table" tabindex="0">
    <table>
      <thead>
        <tr>
          ${columns.map(
            column =>
              html`<th key=${column.name} scope="col" aria-sort=${orderOf(column)}>
                <button type="button" class="sort" onClick=${() => press(column.name)}>
                  ${column.name}
                </button>
              </th>`,
          )}
        </tr>
      </thead>
      <tbody>
        ${shown.map(
          (row, index) =>
            html`<tr key=${index}>
              ${columns.map(({ name, cell }) => html`<td key=${name} data-name=${name}>${cell(row)}</td>`)}
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`
}

function compare({ value }: Column<unknown>, one: unknown, other: unknown): number {
  const [a, b] = [value(one), value(other)]
  return typeof a === 'number' && typeof b === 'number' ? b - a : String(a).localeCompare(String(b))
}
