import { useState } from 'preact/hooks'
import { useAction } from '#api/console/app/use-query.ts'
import { call } from '#api/console/app/api-call.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { chip } from '#api/console/app/parts/chips.ts'
import { confirmDialog } from '#api/console/app/parts/confirm.ts'
import { dialogForm } from '#api/console/app/parts/dialog.ts'
import { textAreaField, textField } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { emptyNote, queryView } from '#api/console/app/parts/query-view.ts'
import { splitLines, useTags, type OrgProps, type Tag } from '#api/console/app/org/org-queries.ts'
import { TagRunDialog } from '#api/console/app/org/tag-run.ts'
import { showToast } from '#api/console/app/toasts.ts'
import { pluralize } from '#api/console/app/format.ts'

/** Lists and edits the tags that the classifier assigns. */
export function Tags({ org }: OrgProps): View {
  const tags = useTags(org)
  const [editing, setEditing] = useState<Tag | 'new'>()
  const [removing, setRemoving] = useState<Tag>()
  const [applying, setApplying] = useState<Tag>()
  return page({
    title: 'Tags',
    description:
      'The classifier asks the question of a tag about each memory; roles allow its label.',
    actions: html`<button
      type="button"
      class="button button-main"
      onClick=${() => setEditing('new')}
    >
      New tag
    </button>`,
    children: html`<div>
      ${queryView(tags, 'tags', all =>
        all.length === 0
          ? emptyNote('No tags yet', 'Without tags every member sees every shared memory.')
          : html`<ul class="plain rows">
              ${all.map(tag => html`<li key=${tag.tag_id}>${tagRow(tag, { edit: setEditing, remove: setRemoving, apply: setApplying })}</li>`)}
            </ul>`,
      )}
      ${
        editing &&
        renderComponent(TagForm, {
          org,
          ...(editing !== 'new' && { tag: editing }),
          onClose: () => setEditing(undefined),
          onSaved: tags.refetch,
        })
      }
      ${
        applying &&
        renderComponent(TagRunDialog, {
          org,
          tag: applying,
          onClose: () => setApplying(undefined),
        })
      }
      ${
        removing &&
        confirmDialog({
          title: `Remove ${removing.label}?`,
          message: html`<p>
            Roles no longer allow it. Memories keep the label, so only roles that see everything see
            them.
          </p>`,
          verb: 'Remove',
          action: async () => {
            const params = { orgId: org, tagId: removing.tag_id }
            await call('DELETE /v1/orgs/:orgId/tags/:tagId', { params })
            showToast('The tag is removed.')
            tags.refetch()
          },
          onClose: () => setRemoving(undefined),
        })
      }
    </div>`,
  })
}

type TagActions = Record<'edit' | 'remove' | 'apply', (tag: Tag) => void>

const tagRow = (tag: Tag, { edit, remove, apply }: TagActions): View =>
  html`<article class="row">
    <div class="row-main">
      <p class="row-title">${chip(tag.label, 'tag')}</p>
      <p>${tag.question}</p>
      <p class="quiet">
        ${pluralize(tag.examples.length, 'example')},
        ${pluralize(tag.negatives.length, 'counterexample')}
      </p>
    </div>
    <div class="actions">
      <button
        type="button"
        class="button"
        aria-label=${`Apply ${tag.label} to shared memories`}
        onClick=${() => apply(tag)}
      >
        Apply to memories
      </button>
      <button
        type="button"
        class="button"
        aria-label=${`Edit ${tag.label}`}
        onClick=${() => edit(tag)}
      >
        Edit
      </button>
      <button
        type="button"
        class="button"
        aria-label=${`Remove ${tag.label}`}
        onClick=${() => remove(tag)}
      >
        Remove
      </button>
    </div>
  </article>`

type FormProps = { org: string; tag?: Tag; onClose: () => void; onSaved: () => void }

function TagForm({ org, tag, onClose, onSaved }: FormProps): View {
  const [label, setLabel] = useState(tag?.label ?? '')
  const [question, setQuestion] = useState(tag?.question ?? '')
  const [examples, setExamples] = useState(tag?.examples.join('\n') ?? '')
  const [negatives, setNegatives] = useState(tag?.negatives.join('\n') ?? '')
  const actionState = useAction()
  const act = async (): Promise<void> => {
    const body = {
      label,
      ...(question && { question }),
      examples: splitLines(examples),
      negatives: splitLines(negatives),
    }
    if (tag) {
      const params = { orgId: org, tagId: tag.tag_id }
      await call('PATCH /v1/orgs/:orgId/tags/:tagId', { params, body })
    } else await call('POST /v1/orgs/:orgId/tags', { params: { orgId: org }, body })
    showToast('The tag is saved.')
    onSaved()
  }
  return dialogForm({
    title: tag ? `Edit ${tag.label}` : 'New tag',
    verb: 'Save',
    actionState,
    onClose,
    act,
    fields: html`<div class="stack">
      ${textField({ label: 'Label', value: label, onValue: setLabel, required: true, maxlength: 100 })}
      ${textField({
        label: 'Question',
        value: question,
        onValue: setQuestion,
        maxlength: 2000,
        hint: 'Empty: whether a memory is about the label.',
      })}
      ${textAreaField({ label: 'Examples', value: examples, onValue: setExamples, hint: 'One a line: memories it fits.' })}
      ${textAreaField({
        label: 'Counterexamples',
        value: negatives,
        onValue: setNegatives,
        hint: 'One a line: memories it does not fit, though one might think so.',
      })}
    </div>`,
  })
}
