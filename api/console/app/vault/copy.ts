import { useState } from 'preact/hooks'
import { call } from '#api/console/app/api-call.ts'
import { formatDateTime, formatPercent, pluralize } from '#api/console/app/format.ts'
import { html, type View } from '#api/console/app/html.ts'
import { onSubmit, selectField, textAreaField, textField } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { emptyNote, faultNote } from '#api/console/app/parts/query-view.ts'
import { showToast } from '#api/console/app/toasts.ts'
import { useAction } from '#api/console/app/use-query.ts'
import { pollOperation } from '#api/console/app/vault/poll-operation.ts'
import type {
  GraftDone,
  GraftPreview,
  TransferDone,
  TransferPreview,
} from '#api/contract/generated/types.ts'

type Preview = TransferPreview | GraftPreview
type Done = TransferDone | GraftDone
type Form = { what: 'all' | 'matching'; key: string; queries: string; threshold: string }

const rowsShown = 20
const inBackground = { prefer: 'respond-async' } as const

/** Copies memories into another vault, after a look at what would be copied. */
export function Copy(): View {
  const [form, setForm] = useState<Form>({ what: 'all', key: '', queries: '', threshold: '0.55' })
  const [preview, setPreview] = useState<Preview>()
  const [share, setShare] = useState<number>()
  const [done, setDone] = useState<Done>()
  const actionState = useAction()
  const set = (changed: Partial<Form>): void => {
    setForm({ ...form, ...changed })
    setPreview(undefined)
    setDone(undefined)
  }
  const look = async (): Promise<void> => setPreview((await send(form, true)) as Preview)
  const copy = async (): Promise<void> => {
    setShare(0)
    try {
      const answer = await send(form, false)
      setDone(
        'status' in answer
          ? await pollOperation<Done>(answer.operation_id, setShare)
          : (answer as Done),
      )
      setPreview(undefined)
      showToast('The memories are copied.')
    } finally {
      setShare(undefined)
    }
  }
  return page({
    title: 'Copy to another vault',
    description: 'Raw memories of the core vault, with their times. This vault does not change.',
    children: html`<div class="stack-wide">
      <form class="panel stack" onSubmit=${onSubmit(() => actionState.run(look))}>
        ${formFields(form, set)} ${faultNote(actionState.fault)}
        <div class="actions">
          <button class="button" disabled=${actionState.isRunning}>See what would be copied</button>
        </div>
      </form>
      <div aria-live="polite" class="stack-wide">
        ${preview && share === undefined && previewView(preview, () => void actionState.run(copy))}
        ${share !== undefined && progressView(share)} ${done && doneView(done)}
      </div>
    </div>`,
  })
}

function send({ what, key, queries, threshold }: Form, dry_run: boolean) {
  const destination = { destination_key: key.trim(), dry_run }
  const headers = dry_run ? {} : inBackground
  if (what === 'all') return call('POST /v1/memory/transfer', { headers, body: destination })
  const lines = queries.split('\n').map(line => line.trim())
  const body = {
    ...destination,
    queries: lines.filter(line => line !== ''),
    threshold: Number(threshold),
  }
  return call('POST /v1/memory/graft', { headers, body })
}

const formFields = (form: Form, set: (changed: Partial<Form>) => void): View =>
  html`<div class="stack">
    ${textField({
      label: 'Key of the other vault',
      type: 'password',
      value: form.key,
      onValue: key => set({ key }),
      required: true,
      autocomplete: 'off',
      placeholder: 'mk_…',
      hint: 'It must be allowed to store. It is used for this copy and not kept.',
    })}
    ${selectField({
      label: 'What is copied',
      value: form.what,
      onValue: what => set({ what }),
      choices: [
        ['all', 'everything in the core vault, up to 10,000 memories'],
        ['matching', 'what matches words of mine'],
      ],
    })}
    ${
      form.what === 'matching' && [
        textAreaField({
          label: 'Questions or topics, one on each line',
          value: form.queries,
          onValue: queries => set({ queries }),
          required: true,
        }),
        selectField({
          label: 'How close',
          value: form.threshold,
          onValue: threshold => set({ threshold }),
          choices: [
            ['0.4', 'broad'],
            ['0.55', 'balanced'],
            ['0.7', 'strict'],
          ],
        }),
      ]
    }
  </div>`

function previewView(
  { count, estimated_tokens, memories, destination_key }: Preview,
  copy: () => void,
): View {
  if (count === 0)
    return emptyNote('Nothing would be copied', 'Nothing here matches, or nothing was stored yet.')
  return html`<section class="stack" aria-label="What would be copied">
    <div class="section-head">
      <p>
        <b>${pluralize(count, 'memory', 'memories')}</b>, ${pluralize(estimated_tokens, 'token')},
        to <code> ${destination_key}</code>. A text that is there already is skipped.
      </p>
      <button type="button" class="button button-main" onClick=${copy}>
        Copy ${pluralize(count, 'memory', 'memories')}
      </button>
    </div>
    <ul class="plain rows">
      ${memories.slice(0, rowsShown).map(
        ({ id, snippet, role, timestamp }) =>
          html`<li key=${id} class="row">
            <div class="row-main">
              <p>${snippet}</p>
              <p class="quiet">${role}, ${formatDateTime(timestamp)}</p>
            </div>
          </li>`,
      )}
    </ul>
    ${count > rowsShown && html`<p class="quiet">The first ${rowsShown} are shown.</p>`}
  </section>`
}

const progressView = (share: number): View =>
  html`<div class="panel progress">
    <progress max="1" value=${share} aria-label="Progress of the copy"></progress>
    <span class="quiet" role="status">${formatPercent(share)} copied</span>
  </div>`

const doneView = ({ copied, deduped_or_skipped, failed, destination_key }: Done): View =>
  html`<p class="panel" role="status">
    <b>${pluralize(copied, 'memory is', 'memories are')} copied</b> to
    <code> ${destination_key}</code>; ${pluralize(deduped_or_skipped, 'was', 'were')} there already,
    ${pluralize(failed, 'failed', 'failed')}.
  </p>`
