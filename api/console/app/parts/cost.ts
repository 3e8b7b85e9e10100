import { pluralize } from '#api/console/app/format.ts'
import { html, type View } from '#api/console/app/html.ts'

/** What a cost does not contain; nothing where it is whole. */
export const unpricedNote = (tokens: number): View | null =>
  tokens === 0
    ? null
    : html`<p class="quiet">
        ${`Not in the cost: ${pluralize(tokens, 'token')} of models without a price. The operator can add prices.`}
      </p>`
