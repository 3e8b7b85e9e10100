import type { FunctionComponent } from 'preact'
import { useEffect, useId, useState } from 'preact/hooks'
import { useAddress } from '#api/console/app/address.ts'
import { html, renderComponent, type Children, type View } from '#api/console/app/html.ts'
import { button } from '#api/console/app/parts/buttons.ts'
import { faultNote } from '#api/console/app/parts/notes.ts'
import { useAction, useDebounced, type Action } from '#api/console/app/queries.ts'

type FieldProps<Value> = {
  label: string
  value: Value
  onValue: (value: Value) => void
  hint?: string
}

const inputValue = (event: Event): string =>
  (event.currentTarget as HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement).value

type Control = (attributes: { 'aria-describedby'?: string }) => View
type LabelledProps = { label: string; hint: string | undefined; control: Control }

/** The hint describes the control and is not part of its label. */
function Field({ label, hint, control }: LabelledProps): View {
  const id = useId()
  return html`<div class="field stack-close">
    <label class="stack-close">
      <span class="field-label">${label}</span>
      ${control(hint ? { 'aria-describedby': id } : {})}
    </label>
    ${hint && html`<span id=${id} class="field-hint">${hint}</span>`}
  </div>`
}

export const labelledControl = (label: string, hint: string | undefined, control: Control): View =>
  renderComponent(Field, { label, hint, control })

const inputField = (
  tag: 'input' | 'textarea',
  { label, value, onValue, hint, ...attributes }: (TextProps & { list?: string }) | TextAreaProps,
): View =>
  labelledControl(
    label,
    hint,
    described =>
      html`<${tag}
        spellcheck=${tag === 'textarea'}
        ...${described}
        ...${attributes}
        value=${value}
        onInput=${(event: Event) => onValue(inputValue(event))}
      />`,
  )

type TextProps = FieldProps<string> & {
  /** What the browser offers while one types. */
  suggestions?: readonly string[]
  type?: 'text' | 'password' | 'search' | 'date' | 'email' | 'number' | 'datetime-local'
  placeholder?: string
  required?: boolean
  maxlength?: number
  min?: number | string
  max?: number
  step?: number
  autocomplete?: string
}

export const textField = ({ suggestions, ...props }: TextProps): View =>
  suggestions
    ? renderComponent(SuggestingField, { suggestions, ...props })
    : inputField('input', { type: 'text', ...props })

function SuggestingField({ suggestions = [], ...props }: TextProps): View {
  const list = useId()
  return html`${inputField('input', { type: 'text', list, ...props })}
    <datalist id=${list}>
      ${suggestions.map(words => html`<option key=${words} value=${words}></option>`)}
    </datalist>`
}

type TextAreaProps = FieldProps<string> & {
  rows?: number
  required?: boolean
  maxlength?: number
  onKeyDown?: (event: KeyboardEvent) => void
}

export const textAreaField = (props: TextAreaProps): View =>
  inputField('textarea', { rows: 4, ...props })

export const selectField = <Value extends string>({
  label,
  value,
  onValue,
  hint,
  choices,
}: FieldProps<Value> & {
  /** Values with their words, in their order; a record begins with those that are whole numbers. */
  choices: readonly (readonly [Value, string])[] | Readonly<Record<Value, string>>
}): View =>
  labelledControl(
    label,
    hint,
    described =>
      html`<select
        ...${described}
        value=${value}
        onChange=${(event: Event) => onValue(inputValue(event) as Value)}
      >
        ${(Array.isArray(choices)
          ? choices
          : Object.entries(choices as Record<string, string>)
        ).map(
          ([choice, words]: [string, string]) =>
            html`<option key=${choice} value=${choice} selected=${choice === value}>
              ${words}
            </option>`,
        )}
      </select>`,
  )

export const checkboxField = ({ label, value, onValue, hint }: FieldProps<boolean>): View =>
  html`<div class="check stack-close">
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

/** Binds controls to the fields of an object: `textField({ label: 'Name', ...of('name') })`. */
export const bindFields =
  <Fields extends object>(fields: Fields, set: (changed: Partial<Fields>) => void) =>
  <Name extends keyof Fields>(name: Name) => ({
    value: fields[name],
    onValue: (value: Fields[Name]) => set({ [name]: value } as unknown as Partial<Fields>),
  })

/** The state of a form's fields, and the function that binds controls to them. */
export function useFields<Fields extends object>(initial: Fields) {
  const [fields, setFields] = useState(initial)
  const set = (changed: Partial<Fields>): void => setFields(before => ({ ...before, ...changed }))
  return { fields, set, of: bindFields(fields, set) }
}

type FormProps = Action & {
  verb: string
  kind?: 'main' | undefined
  class?: string
  children: Children
}

function Form({ verb, kind, class: className = 'panel stack', children, ...action }: FormProps) {
  const { run, isRunning, fault } = useAction()
  return html`<form class=${className} onSubmit=${onSubmit(() => run(action))}>
    ${children} ${faultNote(fault)}
    <div class="actions">
      ${button(isRunning ? 'Working …' : verb, undefined, { kind, disabled: isRunning })}
    </div>
  </form>`
}

/** A form with its error and one button. */
export const form = (props: FormProps): View => renderComponent(Form, props)

/** A text field with the button that submits it. */
export const lineForm = (field: View, submit: View, act: () => unknown): View =>
  html`<form class="panel search-line" onSubmit=${onSubmit(act)}>${field} ${submit}</form>`

/**
 * Filters of a list that its address keeps.
 *
 * @param defaults the same object at every call
 * @returns the fields of the address, what is being typed, and the function that binds controls to it
 */
export function useFilters<Fields extends Record<string, string>>(defaults: Fields) {
  const { fields, setFields, visits } = useAddress(defaults)
  const [form, setForm] = useState(fields)
  // Debounced: no request for each key.
  const debounced = useDebounced(form)
  useEffect(() => setForm(fields), [visits])
  useEffect(() => {
    if (debounced === form) setFields(debounced)
  }, [debounced])
  const set = (changed: Partial<Fields>): void => setForm(before => ({ ...before, ...changed }))
  return { fields, setFields, form, set, of: bindFields(form, set) }
}

/** Fields that filter what is displayed, in a row. */
export const filters = (...fields: Children[]): View =>
  html`<div class="filters" role="group" aria-label="Filters">${fields}</div>`

type FilterBarProps<Fields> = {
  fields: Fields
  /** The same fields with nothing set. */
  unfiltered: Fields
  set: (changed: Partial<Fields>) => void
  /** What is looked for most: a button each. */
  presets: readonly (readonly [name: string, preset: Partial<Fields>])[]
  /** Names of the fields, for the chips of those that are set. */
  names: Partial<Record<keyof Fields, string>>
  /** Words of a value, where it does not speak for itself. */
  words?: (name: keyof Fields, value: string) => string | undefined
  /** All fields; a button shows them. */
  children: Children
}

function FilterBar<Fields extends Record<string, string>>(props: FilterBarProps<Fields>): View {
  const { fields, unfiltered, set, presets, names, words, children } = props
  const [isOpen, setOpen] = useState(false)
  const id = useId()
  const chosen = Object.keys(names).filter(name => fields[name] !== unfiltered[name])
  const isPreset = (preset: Partial<Fields>): boolean =>
    Object.entries({ ...unfiltered, ...preset }).every(([name, value]) => fields[name] === value)
  return html`<div class="stack" role="group" aria-label="Filters">
    <div class="actions">
      ${presets.map(
        ([name, preset]) =>
          html`<button
            key=${name}
            type="button"
            class="button button-preset"
            aria-pressed=${isPreset(preset)}
            onClick=${() => set({ ...unfiltered, ...preset })}
          >
            ${name}
          </button>`,
      )}
      <button
        type="button"
        class="button"
        aria-expanded=${isOpen}
        aria-controls=${id}
        onClick=${() => setOpen(!isOpen)}
      >
        Filter
      </button>
      ${chosen.map(
        name =>
          html`<button
            key=${name}
            type="button"
            class="chip chip-set"
            onClick=${() => set({ [name]: unfiltered[name] } as Partial<Fields>)}
          >
            ${names[name]}: ${words?.(name, fields[name]!) ?? fields[name]}
            <span aria-hidden="true"> ✕</span><span class="unseen">, remove this filter</span>
          </button>`,
      )}
    </div>
    <div id=${id} class="filters panel" hidden=${!isOpen}>${children}</div>
  </div>`
}

/** Presets, a button that shows all filters, and a chip for each that is set, in one row. */
export const filterBar = <Fields extends Record<string, string>>(
  props: FilterBarProps<Fields>,
): View => renderComponent(FilterBar as FunctionComponent<FilterBarProps<Fields>>, props)
