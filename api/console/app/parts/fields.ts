import { useId } from 'preact/hooks'
import { html, renderComponent, type View } from '#api/console/app/html.ts'

type Input = HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement

export type FieldProps<Value> = {
  label: string
  value: Value
  onValue: (value: Value) => void
  hint?: string
}

/** The value of a form control after an event. */
const inputValue = (event: Event): string => (event.currentTarget as Input).value

type LabelledProps = {
  label: string
  hint: string | undefined
  control: (attributes: { 'aria-describedby'?: string }) => View
}

/** The hint describes the control and is not part of its label. */
function Field({ label, hint, control }: LabelledProps): View {
  const id = useId()
  return html`<div class="field">
    <label>
      <span class="field-label">${label}</span>
      ${control(hint ? { 'aria-describedby': id } : {})}
    </label>
    ${hint && html`<span id=${id} class="field-hint">${hint}</span>`}
  </div>`
}

/** A control of any kind with its label and hint. */
export const labelledControl = (
  label: string,
  hint: string | undefined,
  control: LabelledProps['control'],
): View => renderComponent(Field, { label, hint, control })

export const textField = ({
  label,
  value,
  onValue,
  hint,
  ...attributes
}: FieldProps<string> & {
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
  labelledControl(
    label,
    hint,
    described =>
      html`<input
        type="text"
        spellcheck=${false}
        ...${described}
        ...${attributes}
        value=${value}
        onInput=${(event: Event) => onValue(inputValue(event))}
      />`,
  )

export const textAreaField = ({
  label,
  value,
  onValue,
  hint,
  rows = 4,
  ...attributes
}: FieldProps<string> & { rows?: number; required?: boolean; maxlength?: number }): View =>
  labelledControl(
    label,
    hint,
    described =>
      html`<textarea
        rows=${rows}
        ...${described}
        ...${attributes}
        value=${value}
        onInput=${(event: Event) => onValue(inputValue(event))}
      ></textarea>`,
  )

export const selectField = <Value extends string>({
  label,
  value,
  onValue,
  hint,
  choices,
}: FieldProps<Value> & { choices: readonly (readonly [Value, string])[] }): View =>
  labelledControl(
    label,
    hint,
    described =>
      html`<select
        ...${described}
        value=${value}
        onChange=${(event: Event) => onValue(inputValue(event) as Value)}
      >
        ${choices.map(
          ([choice, words]) =>
            html`<option key=${choice} value=${choice} selected=${choice === value}>
              ${words}
            </option>`,
        )}
      </select>`,
  )

export const checkboxField = ({ label, value, onValue, hint }: FieldProps<boolean>): View =>
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

/** A group of checkboxes with one heading. */
export const checkboxGroup = <Value extends string | number>({
  label,
  value,
  onValue,
  choices,
}: FieldProps<readonly Value[]> & { choices: readonly (readonly [Value, string])[] }): View =>
  html`<fieldset class="checks">
    <legend class="field-label">${label}</legend>
    ${choices.map(([choice, words]) =>
      checkboxField({
        label: words,
        value: value.includes(choice),
        onValue: on => onValue(on ? [...value, choice] : value.filter(one => one !== choice)),
      }),
    )}
  </fieldset>`

/** Runs an action in place of the form's submission. */
export const onSubmit = (act: () => unknown) => (event: Event) => {
  event.preventDefault()
  act()
}
