import { useEffect, useState } from 'preact/hooks'
import { VaultError } from '#api/client/client.ts'
import { call, filled } from '#api/console/app/api-call.ts'
import { pluralize, formatCount, formatDateTime } from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { useTags, type OrgProps } from '#api/console/app/org/org-queries.ts'
import { chip } from '#api/console/app/parts/chips.ts'
import {
  confirmButton,
  dialogButton,
  dialogForm,
  actionButton,
  dialog,
} from '#api/console/app/parts/dialogs.ts'
import { textAreaField, textField, useFields } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { editableList, queryView, progressBar } from '#api/console/app/parts/notes.ts'
import { useQuery } from '#api/console/app/queries.ts'
import type { OrgTag, TagRun } from '#api/contract/generated/types.ts'

/** Lists and edits the tags that the classifier assigns. */
export function Tags({ org }: OrgProps): View {
  const tags = useTags(org)
  const editor = (tag?: OrgTag) => (onClose: () => void) =>
    renderComponent(TagForm, { org, tag, onClose, onSaved: tags.refetch })
  return page({
    title: 'Tags',
    description:
      'The classifier asks the question of a tag about each memory; roles allow its label.',
    actions: dialogButton('New tag', editor(), { kind: 'main' }),
    children: html`${editableList(tags, {
      what: 'tags',
      empty: ['No tags yet', 'Without tags every member sees every shared memory.'],
      key: ({ tag_id }) => tag_id,
      main: ({ label, question, examples, negatives }) =>
        html`<p class="row-title">${chip(label, 'data')}</p>
          <p>${question}</p>
          <p class="quiet">
            ${`${pluralize(examples.length, 'example')}, ${pluralize(negatives.length, 'counterexample')}`}
          </p>`,
      actions: tag => [
        dialogButton(
          'Apply to memories',
          onClose => renderComponent(TagRunDialog, { org, tag, onClose }),
          { about: tag.label },
        ),
        dialogButton('Edit', editor(tag), { about: tag.label }),
        confirmButton('Remove', {
          about: tag.label,
          title: `Remove ${tag.label}?`,
          message:
            'Roles no longer allow it. Memories keep the label, so only roles that see everything see them.',
          act: () =>
            call('DELETE /v1/orgs/:orgId/tags/:tagId', {
              params: { orgId: org, tagId: tag.tag_id },
            }),
          onDone: tags.refetch,
          done: 'The tag is removed.',
        }),
      ],
    })}`,
  })
}

type FormProps = {
  org: string
  /** Undefined creates a tag. */
  tag: OrgTag | undefined
  onClose: () => void
  onSaved: () => void
}

function TagForm({ org, tag, onClose, onSaved }: FormProps): View {
  const { fields, of } = useFields({
    label: tag?.label ?? '',
    question: tag?.question ?? '',
    examples: tag?.examples.join('\n') ?? '',
    negatives: tag?.negatives.join('\n') ?? '',
  })
  return dialogForm({
    title: tag ? `Edit ${tag.label}` : 'New tag',
    verb: 'Save',
    onClose,
    act: async () => {
      const body = {
        label: fields.label,
        ...filled({ question: fields.question }),
        examples: splitLines(fields.examples),
        negatives: splitLines(fields.negatives),
      }
      if (tag) {
        const params = { orgId: org, tagId: tag.tag_id }
        await call('PATCH /v1/orgs/:orgId/tags/:tagId', { params, body })
      } else await call('POST /v1/orgs/:orgId/tags', { params: { orgId: org }, body })
      onSaved()
    },
    done: 'The tag is saved.',
    fields: html`${textField({ label: 'Label', ...of('label'), required: true, maxlength: 100 })}
    ${textField({
      label: 'Question',
      ...of('question'),
      maxlength: 2000,
      hint: 'Empty: whether a memory is about the label.',
    })}
    ${textAreaField({ label: 'Examples', ...of('examples'), hint: 'One a line: memories it fits.' })}
    ${textAreaField({
      label: 'Counterexamples',
      ...of('negatives'),
      hint: 'One a line: memories it does not fit, though one might think so.',
    })}`,
  })
}

/** One item a line. */
const splitLines = (text: string): string[] =>
  text
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '')

type Estimate = { memories: number; calls: number; input_tokens: number }
type Props = { org: string; tag: OrgTag; onClose: () => void }

const pollIntervalMs = 2_000

/** Applies a tag to the memories that are shared already. Shows the cost first, then the progress. */
function TagRunDialog({ org, tag, onClose }: Props): View {
  const params = { orgId: org, tagId: tag.tag_id }
  const [started, setStarted] = useState(0)
  const runQuery = useQuery(signal => findRun(params, signal), [tag.tag_id, started])
  const run = runQuery.answer?.run
  const isRunning = run?.state === 'running'
  const estimateQuery = useQuery(isRunning ? undefined : signal => estimate(params, signal), [
    tag.tag_id,
    isRunning,
  ])
  useEffect(() => {
    if (!isRunning) return undefined
    const timer = setTimeout(runQuery.refetch, pollIntervalMs)
    return () => clearTimeout(timer)
  }, [runQuery.answer])
  const start = async (): Promise<void> => {
    await call('POST /v1/orgs/:orgId/tags/:tagId/apply', { params, body: {} })
    setStarted(count => count + 1)
  }
  return dialog({
    title: `Apply ${tag.label} to shared memories`,
    onClose,
    children: html`<p>
        The tag is checked against every shared memory that does not have it. Memories that it fits
        get the tag, so fewer members see them, never more. Where the answer is doubtful, the memory
        also goes to review.
      </p>
      ${queryView(runQuery, 'the last run', ({ run: last }) => html`<div>${last && runView(last)}</div>`)}
      ${
        !isRunning &&
        queryView(estimateQuery, 'the estimate', expected => estimateView(expected, start))
      }`,
  })
}

type Params = { orgId: string; tagId: string }

/** The newest run; null where the tag was never applied. */
async function findRun(params: Params, signal: AbortSignal): Promise<{ run: TagRun | null }> {
  try {
    return { run: await call('GET /v1/orgs/:orgId/tags/:tagId/apply', { params }, signal) }
  } catch (error) {
    if (error instanceof VaultError && error.status === 404) return { run: null }
    throw error
  }
}

async function estimate(params: Params, signal: AbortSignal): Promise<Estimate> {
  const answer = await call(
    'POST /v1/orgs/:orgId/tags/:tagId/apply',
    { params, body: { dry_run: true } },
    signal,
  )
  if ('dry_run' in answer) return answer
  throw new Error('a dry run was answered with a run')
}

const estimateView = (
  { memories, calls, input_tokens: tokens }: Estimate,
  start: () => Promise<void>,
): View =>
  memories === 0
    ? html`<p>Every shared memory has this tag.</p>`
    : html`<p>
          ${pluralize(memories, 'memory', 'memories')} to check: ${pluralize(calls, 'model call')},
          about ${formatCount(tokens)} input tokens.
        </p>
        <div class="actions">
          ${actionButton(`Check ${pluralize(memories, 'memory', 'memories')}`, { act: start, kind: 'main' })}
        </div>`

const runView = (run: TagRun): View => {
  const { state, memories, examined, tagged, doubtful, last_error: lastError } = run
  return html`<section class="stack" aria-label="Last run" role="status">
    ${state === 'running' && progressBar('Memories checked', { done: examined, total: memories })}
    <p>
      ${
        state === 'running'
          ? `Checked ${formatCount(examined)} of ${pluralize(memories, 'memory', 'memories')}.`
          : `Last run: checked ${pluralize(examined, 'memory', 'memories')}.`
      }${' '}
      ${formatCount(tagged)} got the tag, ${formatCount(doubtful)} of them are in review.
    </p>
    ${lastError !== null && html`<p class="fault-words">Waiting: ${lastError}</p>`}
    <p class="quiet">Started by ${run.created_by}, ${formatDateTime(run.created_at)}</p>
  </section>`
}
