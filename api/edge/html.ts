/** Markup; everything else in a template is escaped. */
export class Html {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

type Value = Html | string | number | null | undefined | readonly Html[]

const escapes: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

const toMarkup = (value: Value): string => {
  if (value instanceof Html) return value.text
  if (typeof value === 'object' && value !== null) return value.map(({ text }) => text).join('')
  return String(value ?? '').replaceAll(/[&<>"']/g, character => escapes[character]!)
}

/** A template whose values are escaped, unless they are markup. */
export const html = (parts: TemplateStringsArray, ...values: Value[]): Html =>
  new Html(parts.reduce((text, part, index) => text + toMarkup(values[index - 1]) + part))

/** A name from outside without control and format characters, which could turn around or hide what stands beside it. */
export const plainText = (text: string): string =>
  text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, '')
