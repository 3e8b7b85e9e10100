import { useId } from 'preact/hooks'
import { html, part, type View } from '#api/console/app/html.ts'

type Input = HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement

export type FieldOf<Value> = {
  label: string
  value: Value
  onValue: (value: Value) => void
  hint?: string
}

/** What a form control holds after an event. */
export const valueOf = (event: Event): string => (event.currentTarget as Input).value

type Labelled = {
  label: string
  hint: string | undefined
  control: (attributes: { 'aria-describedby'?: string }) => View
}

/** The hint describes the control: it is no part of its name. */
function Field({ label, hint, control }: Labelled): View {
  const id = useId()
  return html`<div class="field">
    <label>
      <span class="field-label">${label}</span>
      ${control(hint ? { 'aria-describedby': id } : {})}
    </label>
    ${hint && html`<span id=${id} class="field-hint">${hint}</span>`}
  </div>`
}

/** A control of any kind under its name, with what there is to know about it. */
export const labelled = (
  label: string,
  hint: string | undefined,
  control: Labelled['control'],
): View => part(Field, { label, hint, control })

export const textField = ({
  label,
  value,
  onValue,
  hint,
  ...attributes
}: FieldOf<string> & {
  type?: 'text' | 'password' | 'search' | 'date' | 'email' | 'number' | 'datetime-local'
  placeholder?: string
  required?: boolean
  maxlength?: number
  min?: number | string
  max?: number | string
  step?: number | string
  list?: string
  autocomplete?: string
  class?: string
}): View =>
  labelled(
    label,
    hint,
    described =>
      html`<input
        type="text"
        spellcheck=${false}
        ...${described}
        ...${attributes}
        value=${value}
        onInput=${(event: Event) => onValue(valueOf(event))}
      />`,
  )

export const areaField = ({
  label,
  value,
  onValue,
  hint,
  rows = 4,
  ...attributes
}: FieldOf<string> & { rows?: number; required?: boolean; maxlength?: number }): View =>
  labelled(
    label,
    hint,
    described =>
      html`<textarea
        rows=${rows}
        ...${described}
        ...${attributes}
        value=${value}
        onInput=${(event: Event) => onValue(valueOf(event))}
      ></textarea>`,
  )

export const choiceField = <Value extends string>({
  label,
  value,
  onValue,
  hint,
  choices,
}: FieldOf<Value> & { choices: readonly (readonly [Value, string])[] }): View =>
  labelled(
    label,
    hint,
    described =>
      html`<select
        ...${described}
        value=${value}
        onChange=${(event: Event) => onValue(valueOf(event) as Value)}
      >
        ${choices.map(
          ([choice, words]) =>
            html`<option key=${choice} value=${choice} selected=${choice === value}>
              ${words}
            </option>`,
        )}
      </select>`,
  )

export const checkField = ({ label, value, onValue, hint }: FieldOf<boolean>): View =>
  html`<div class="check">
    <label>
      <input
        type="checkbox"
        checked=${value}
        onChange=${(event: Event) => onValue((event.currentTarget as HTMLInputElement).checked)}
      />
      ${label}
    </label>
    ${hint && html`<span class="field-hint">${hint}</span>`}
  </div>`

/** Several of several: a set of boxes under one heading. */
export const checksField = <Value extends string | number>({
  label,
  value,
  onValue,
  choices,
}: FieldOf<readonly Value[]> & { choices: readonly (readonly [Value, string])[] }): View =>
  html`<fieldset class="checks">
    <legend class="field-label">${label}</legend>
    ${choices.map(([choice, words]) =>
      checkField({
        label: words,
        value: value.includes(choice),
        onValue: on => onValue(on ? [...value, choice] : value.filter(one => one !== choice)),
      }),
    )}
  </fieldset>`

/** Runs a form's action in place of sending it. */
export const onSubmit = (act: () => unknown) => (event: Event) => {
  event.preventDefault()
  act()
}
