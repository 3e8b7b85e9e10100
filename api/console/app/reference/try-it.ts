import { useState } from 'preact/hooks'
import { html, type View } from '#api/console/app/html.ts'
import {
  exampleOf,
  isOfPath,
  type Operation,
  type Parameter,
} from '#api/console/app/reference/document.ts'

/** Until the tab is closed, never beyond. */
const stored = 'memory-vault.reference'
export const storedKey = (): string => sessionStorage.getItem(stored) ?? ''
export const storeKey = (key: string): void => sessionStorage.setItem(stored, key)

type Answer = { status: number; ms: number; headers: string; body: string }

/** Sends a request to this service and shows what it answers. */
export function TryIt({ operation }: { operation: Operation }): View {
  const { method, path, parameters, requestBody } = operation
  const example = requestBody?.content?.['application/json']?.example
  const [values, setValues] = useState<Record<string, string>>(() =>
    Object.fromEntries(
      parameters.filter(one => one.required).map(one => [one.name, exampleOf(one)] as const),
    ),
  )
  const [body, setBody] = useState(example ? JSON.stringify(example, null, 2) : '')
  const [answer, setAnswer] = useState<Answer>()
  const [fault, setFault] = useState('')
  const valueOf = (place: Parameter['in']): [string, string][] =>
    parameters
      .filter(one => one.in === place && values[one.name])
      .map(one => [one.name, values[one.name]!])
  const target = (): string => {
    const query = new URLSearchParams(valueOf('query')).toString()
    const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
      encodeURIComponent(values[name] ?? ''),
    )
    return `${filled}${query && `?${query}`}`
  }
  const headers = (): Record<string, string> => ({
    ...(storedKey() && { authorization: `Bearer ${storedKey()}` }),
    ...(body && { 'content-type': 'application/json' }),
    ...Object.fromEntries(valueOf('header')),
  })
  const send = async (event: Event): Promise<void> => {
    event.preventDefault()
    setFault('')
    const begun = performance.now()
    try {
      const response = await fetch(target(), {
        method: method.toUpperCase(),
        headers: headers(),
        ...(body && method !== 'get' && { body }),
      })
      const text = await response.text()
      const isJson = response.headers.get('content-type')?.includes('json') ?? false
      setAnswer({
        status: response.status,
        ms: Math.round(performance.now() - begun),
        headers: [...response.headers].map(([name, value]) => `${name}: ${value}`).join('\n'),
        body: isJson && text ? JSON.stringify(JSON.parse(text), null, 2) : text,
      })
    } catch {
      setAnswer(undefined)
      setFault('The service did not answer, or not with what it said.')
    }
  }
  const field = (one: Parameter): View =>
    html`<label key=${one.name} class="field stack-close">
      <span class="field-label">${one.name}${one.required && ' (required)'}</span>
      <input
        value=${values[one.name] ?? ''}
        required=${one.required}
        onInput=${(event: Event) =>
          setValues({ ...values, [one.name]: (event.currentTarget as HTMLInputElement).value })}
      />
    </label>`
  const [needed, further] = [parameters.filter(isOfPath), parameters.filter(one => !isOfPath(one))]
  return html`<form class="stack" onSubmit=${send}>
    ${needed.length > 0 && html`<div class="filters">${needed.map(field)}</div>`}
    ${
      further.length > 0 &&
      html`<details>
        <summary>${`Parameters and headers (${further.length})`}</summary>
        <div class="filters options">${further.map(field)}</div>
      </details>`
    }
    ${
      requestBody &&
      html`<label class="field stack-close">
        <span class="field-label">Body</span>
        <textarea
          class="code"
          rows=${Math.min(16, body.split('\n').length + 1)}
          value=${body}
          onInput=${(event: Event) => setBody((event.currentTarget as HTMLTextAreaElement).value)}
        ></textarea>
      </label>`
    }
    <div class="actions">
      <button class="button button-main">Send</button>
      ${!storedKey() && html`<span class="quiet">Without a key: it stands at the top of the page.</span>`}
    </div>
    ${fault && html`<p class="fault" role="alert">${fault}</p>`}
    ${
      answer &&
      html`<div class="stack-tight" role="status">
        <p>
          <b class=${answer.status < 400 ? 'chip chip-plain' : 'fault-words'}>${answer.status}</b>
          <span class="quiet">${` in ${answer.ms} ms`}</span>
        </p>
        <pre class="code" tabindex="0">${answer.body}</pre>
        <details>
          <summary>Headers</summary>
          <pre class="code" tabindex="0">${answer.headers}</pre>
        </details>
      </div>`
    }
  </form>`
}
