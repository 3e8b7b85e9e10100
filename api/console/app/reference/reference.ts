import { render } from 'preact'
import { useState } from 'preact/hooks'
import { html, renderComponent, type Children, type View } from '#api/console/app/html.ts'
import {
  fieldsOf,
  operationsOf,
  typeWords,
  type OpenApi,
  type Operation,
  type Schema,
} from '#api/console/app/reference/document.ts'
import { storedKey, storeKey, TryIt } from '#api/console/app/reference/try-it.ts'
import { applyTheme, storedTheme } from '#api/console/app/theme.ts'

const first = 'Start here'

/** The API reference: groups of operations, found by words; an operation is drawn once it is opened. */
function Reference({ document: api }: { document: OpenApi }): View {
  const [phrase, setPhrase] = useState('')
  const [key, setKey] = useState(storedKey)
  // `#/Memory/search` opens an operation.
  const linked = decodeURIComponent(location.hash).split('/')
  const words = phrase.toLowerCase().split(/\s+/).filter(Boolean)
  const found = operationsOf(api).filter(operation => {
    const { method, path, summary, description = '', tags } = operation
    const text = [method, path, summary, description, ...tags].join(' ').toLowerCase()
    return words.every(word => text.includes(word))
  })
  const groups = api.tags
    .map(({ name, description }) => ({
      name,
      description,
      operations: found.filter(({ tags }) => tags.includes(name)),
    }))
    .filter(({ operations }) => operations.length > 0)
  return html`<main class="main reference stack-wide">
    <div>
      <h1>API reference</h1>
      <p class="quiet">
        ${`Version ${api.info.version}, ${found.length} calls. Each can be tried here, against this service. `}
        <a href="/openapi.json">OpenAPI</a>
      </p>
    </div>
    <div class="filters">
      <label class="field stack-close">
        <span class="field-label">Find</span>
        <input
          type="search"
          placeholder="Find by word or path"
          value=${phrase}
          onInput=${(event: Event) => setPhrase((event.currentTarget as HTMLInputElement).value)}
        />
      </label>
      <label class="field stack-close">
        <span class="field-label">Key, until this tab is closed</span>
        <input
          type="password"
          autocomplete="off"
          placeholder="mk_…"
          value=${key}
          onInput=${(event: Event) => {
            const typed = (event.currentTarget as HTMLInputElement).value.trim()
            storeKey(typed)
            setKey(typed)
          }}
        />
      </label>
    </div>
    ${groups.length === 0 && html`<p class="empty">No call has all of these words.</p>`}
    ${groups.map(
      ({ name, description, operations }) =>
        html`<details
          key=${`${name} ${phrase === ''}`}
          class="group"
          open=${phrase !== '' || name === (linked[1] || first)}
        >
          <summary>
            <h2>${name}</h2>
            <span class="quiet">${`${description} ${operations.length} calls.`}</span>
          </summary>
          <div class="rows">
            ${operations.map(operation =>
              renderComponent(OperationRow, {
                key: operation.operationId,
                api,
                operation,
                words,
                isLinked: linked[2] === operation.operationId,
              }),
            )}
          </div>
        </details>`,
    )}
  </main>`
}

type RowProps = { api: OpenApi; operation: Operation; words: string[]; isLinked: boolean }

function OperationRow({ api, operation, words, isLinked }: RowProps): View {
  const [isOpen, setOpen] = useState(isLinked)
  const { method, path, summary, description = '', tags, operationId } = operation
  // Where a word stands in the description alone, its sentence says why this was found.
  const hidden = words.find(word => !`${path} ${summary}`.toLowerCase().includes(word))
  const sentence =
    hidden && description.split(/(?<=\.)\s/).find(one => one.toLowerCase().includes(hidden))
  return html`<details
    class="operation"
    open=${isOpen}
    onToggle=${(event: Event) => {
      const { open } = event.currentTarget as HTMLDetailsElement
      setOpen(open)
      if (open) history.replaceState(null, '', `#/${encodeURIComponent(tags[0]!)}/${operationId}`)
    }}
  >
    <summary>
      <span class=${`method method-${method}`}>${method.toUpperCase()}</span>
      <code>${path}</code> <span>${summary}</span>
      ${sentence && html`<span class="quiet">${inline(sentence)}</span>`}
    </summary>
    ${isOpen && detailView(api, operation)}
  </details>`
}

function detailView(api: OpenApi, operation: Operation): View {
  const { description, parameters, requestBody, responses, security = [] } = operation
  const body = requestBody?.content?.['application/json']?.schema
  const keys = security.flatMap(one => Object.keys(one))
  return html`<div class="stack operation-detail">
    <p class="memory-text">${inline(description ?? '')}</p>
    <p class="quiet">
      ${keys.length === 0 ? 'Open: it needs no key.' : `Takes: ${keys.map(name => (name === 'admin' ? 'an admin credential' : 'a Memory Key')).join(', or ')}.`}
    </p>
    <div class="halves">
      <section class="stack">
        <h3>Try it</h3>
        ${renderComponent(TryIt, { operation })}
      </section>
      <section class="stack">
        ${body && fieldTable('Body', fieldsOf(api, body))}
        ${Object.entries(responses).map(([status, given]) => {
          const name = given.$ref?.split('/').at(-1)
          const response = name === undefined ? given : (api.components.responses[name] ?? given)
          const schema = Object.values(response.content ?? {})[0]?.schema
          const words = inline(response.description ?? '')
          return schema && status.startsWith('2')
            ? fieldTable(`Answer ${status}`, fieldsOf(api, schema))
            : html`<p key=${status}><b>${status}</b> ${words}</p>`
        })}
        ${
          parameters.length > 0 &&
          fieldTable(
            'Parameters and headers',
            parameters.map(one => [
              one.name,
              { ...one.schema, description: one.description ?? '' },
              one.required,
            ]),
          )
        }
      </section>
    </div>
  </div>`
}

const fieldTable = (title: string, fields: readonly (readonly [string, Schema, boolean])[]): View =>
  html`<div class="stack-tight">
    <h3>${title}</h3>
    <dl class="fields">
      ${fields.map(
        ([name, schema, isRequired]) =>
          html`<div key=${name}>
            <dt>
              <code>${name}</code> <span>${typeWords(schema)}</span>
              ${isRequired && html`<b>required</b>`}
            </dt>
            ${schema.description && html`<dd>${inline(schema.description)}</dd>`}
          </div>`,
      )}
    </dl>
  </div>`

/** A text with what stands between backticks as code. */
const inline = (text: string): Children =>
  text.split('`').map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part))

applyTheme(storedTheme())
const response = await fetch('/openapi.json')
render(
  renderComponent(Reference, { document: (await response.json()) as OpenApi }),
  document.querySelector('#console')!,
)
