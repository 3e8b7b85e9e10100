import { html, type View } from '#api/console/app/html.ts'

/** A table that scrolls when it is too wide. The first cell is the row's header. */
export const table = (head: string[], rows: string[][]): View =>
  html`<div class="table" tabindex="0">
    <table>
      <thead>
        <tr>
          ${head.map(name => html`<th key=${name} scope="col">${name}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          cells =>
            html`<tr key=${cells[0]}>
              ${cells.map((cell, index) => html`<td key=${index}>${cell}</td>`)}
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`
