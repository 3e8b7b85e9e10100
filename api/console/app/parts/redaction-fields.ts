import type { EndpointResponse } from '#api/client/client.ts'
import { html, type View } from '#api/console/app/html.ts'
import { checkboxGroup, selectField } from '#api/console/app/parts/fields.ts'

export type Redaction = EndpointResponse<'GET /v1/account/policy'>['redaction']
type Kind = Redaction['kinds'][number]

const kinds: readonly (readonly [Kind, string])[] = [
  ['secret', 'Keys, tokens and passwords'],
  ['card', 'Card numbers'],
  ['iban', 'Bank accounts'],
  ['national-id', 'National ids'],
  ['email', 'Email addresses'],
  ['phone', 'Phone numbers'],
  ['ip', 'Internet addresses'],
]

/** Form fields of a redaction policy. */
export const redactionFields = (
  { mode, kinds: chosen }: Redaction,
  onValue: (redaction: Redaction) => void,
): View =>
  html`<div class="stack">
    ${selectField({
      label: 'Private data in what is stored',
      value: mode,
      onValue: mode => onValue({ mode, kinds: chosen }),
      choices: [
        ['off', 'Is kept as it is'],
        ['redact', 'Is replaced by its kind'],
        ['block', 'Is refused, and so is the text around it'],
      ],
      hint: 'From the next request on; what is stored already stays. A model call is never refused.',
    })}
    ${
      mode !== 'off' &&
      checkboxGroup({
        label: 'What is looked for',
        value: chosen,
        onValue: kinds => onValue({ mode, kinds: [...kinds] }),
        choices: kinds,
      })
    }
  </div>`
