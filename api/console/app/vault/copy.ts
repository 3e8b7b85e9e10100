import { useState } from 'preact/hooks'
import { hrefTo } from '#api/console/app/address.ts'
import { call, pollOperation } from '#api/console/app/api-call.ts'
import { currentCredential } from '#api/console/app/credential.ts'
import { formatDateTime, formatPercent, pluralize } from '#api/console/app/format.ts'
import { html, type View } from '#api/console/app/html.ts'
import { actionButton } from '#api/console/app/parts/dialogs.ts'
import {
  bindFields,
  form,
  selectField,
  textAreaField,
  textField,
} from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { emptyNote, progressBar, row, rows } from '#api/console/app/parts/notes.ts'
import { findUser } from '#api/console/app/vault/people.ts'
import words from '#api/console/app/vault/words.json' with { type: 'json' }
import type {
  GraftDone,
  GraftPreview,
  TransferDone,
  TransferPreview,
} from '#api/contract/generated/types.ts'

type Preview = TransferPreview | GraftPreview
type Done = TransferDone | GraftDone
type Form = {
  what: 'all' | 'matching'
  user: string
  key: string
  queries: string
  threshold: string
}

const rowsShown = 20

/** Copies memories into another vault, after a look at what would be copied. */
export function Copy(): View {
  const [fields, setFields] = useState<Form>({
    what: 'all',
    user: '',
    key: '',
    queries: '',
    threshold: '0.55',
  })
  const [preview, setPreview] = useState<Preview>()
  const [share, setShare] = useState<number>()
  const [done, setDone] = useState<Done>()
  const set = (changed: Partial<Form>): void => {
    setFields({ ...fields, ...changed })
    setPreview(undefined)
    setDone(undefined)
  }
  const look = async (): Promise<void> => setPreview((await send(fields, true)) as Preview)
  const copy = async (): Promise<void> => {
    setShare(0)
    try {
      const answer = await send(fields, false)
      setDone(
        'status' in answer
          ? await pollOperation<Done>(answer.operation_id, setShare)
          : (answer as Done),
      )
      setPreview(undefined)
    } finally {
      setShare(undefined)
    }
  }
  return page({
    title: 'Copy to another vault',
    description: 'What was said outside sessions, with its times. This vault does not change.',
    children: html`<div class="halves copy">
        ${form({ verb: 'See what would be copied', kind: 'main', act: look, children: formFields(fields, set) })}
        <section class="panel stack-tight">
          <h2>What a copy does</h2>
          <ul class="bullets stack-close">
            ${words.copy.map(line => html`<li key=${line}>${line}</li>`)}
          </ul>
          <p class="quiet">
            Everything of this vault as a file: <a href=${hrefTo('files')}>Upload and export</a>.
          </p>
        </section>
      </div>
      <div aria-live="polite" class="stack-wide">
        ${share !== undefined && progressBar('Progress of the copy', { done: share, total: 1, words: `${formatPercent(share)} copied` })}
        ${preview && previewView(preview, copy)} ${done && doneView(done)}
      </div>`,
  })
}

/** The key of a user of the account; an id that is not known makes none. */
async function keyOf(user: string): Promise<string> {
  await findUser(user)
  return (await call('POST /v1/keys', { body: { external_id: user } })).key
}

async function send({ what, user, key, queries, threshold }: Form, dry_run: boolean) {
  const destination_key = user.trim() === '' ? key.trim() : await keyOf(user.trim())
  const destination = { destination_key, dry_run }
  const headers = dry_run ? {} : ({ prefer: 'respond-async' } as const)
  if (what === 'all') return call('POST /v1/memory/transfer', { headers, body: destination })
  const lines = queries.split('\n').map(line => line.trim())
  const body = {
    ...destination,
    queries: lines.filter(line => line !== ''),
    threshold: Number(threshold),
  }
  return call('POST /v1/memory/graft', { headers, body })
}

function formFields(fields: Form, set: (changed: Partial<Form>) => void): View {
  const of = bindFields(fields, set)
  const { owner } = currentCredential()!
  return html`${owner && textField({ ...words.fields.copyUser, ...of('user') })}
  ${fields.user.trim() === '' && textField({ ...words.fields.copyKey, type: 'password', ...of('key') })}
  ${selectField({
    label: 'What is copied',
    ...of('what'),
    choices: { all: 'everything (10,000 at most)', matching: 'what matches words of mine' },
  })}
  ${
    fields.what === 'matching' && [
      textAreaField({
        label: 'Questions or topics, one on each line',
        ...of('queries'),
        required: true,
      }),
      selectField({
        label: 'How close',
        ...of('threshold'),
        choices: { '0.4': 'broad', '0.55': 'balanced', '0.7': 'strict' },
      }),
    ]
  }`
}

function previewView(
  { count, estimated_tokens, memories, destination_key }: Preview,
  copy: () => Promise<void>,
): View {
  if (count === 0)
    return emptyNote('Nothing would be copied', 'Nothing here matches, or nothing was stored yet.')
  const shown = memories.slice(0, rowsShown)
  return html`<section class="stack" aria-label="What would be copied">
    <div class="section-head">
      <p>
        <b>${pluralize(count, 'memory', 'memories')}</b>, ${pluralize(estimated_tokens, 'token')},
        to <code> ${destination_key}</code>. A text that is there already is skipped.
      </p>
      ${actionButton(`Copy ${pluralize(count, 'memory', 'memories')}`, {
        act: copy,
        kind: 'main',
        done: 'The memories are copied.',
      })}
    </div>
    ${rows(
      shown.map(({ id, snippet, role, timestamp }) => [
        id,
        row(
          html`<p>${snippet}</p>
            <p class="quiet">${role}, ${formatDateTime(timestamp)}</p>`,
        ),
      ]),
    )}
    ${count > rowsShown && html`<p class="quiet">The first ${rowsShown} are shown.</p>`}
  </section>`
}

const doneView = ({ copied, deduped_or_skipped, failed, destination_key }: Done): View =>
  html`<p class="panel" role="status">
    <b>${pluralize(copied, 'memory is', 'memories are')} copied</b> to
    <code> ${destination_key}</code
    >;${` ${pluralize(deduped_or_skipped, 'was', 'were')} there already, ${failed} failed.`}
  </p>`
