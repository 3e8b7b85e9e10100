import { useEffect, useState } from 'preact/hooks'
import { useAddress } from '#api/console/app/address.ts'
import { formatCount, formatPercent } from '#api/console/app/format.ts'
import { html, type View } from '#api/console/app/html.ts'
import { call } from '#api/console/app/api-call.ts'
import { button, copyButton } from '#api/console/app/parts/buttons.ts'
import { onSubmit, textAreaField } from '#api/console/app/parts/fields.ts'
import { figure, page, section } from '#api/console/app/parts/frame.ts'
import { emptyNote, queryView } from '#api/console/app/parts/notes.ts'
import { useQuery } from '#api/console/app/queries.ts'
import { useVaultUser } from '#api/console/app/vault-user.ts'
import { givenCards, givenOf, type PrepareAnswer } from '#api/console/app/vault/given.ts'

const emptyPrompt = { message: '' }

/** What a model would be given for a message. No model is called, and nothing is stored. */
export function Prompt(): View {
  const user = useVaultUser()
  const { fields, setFields, visits } = useAddress(emptyPrompt)
  const [message, setMessage] = useState(fields.message)
  useEffect(() => setMessage(fields.message), [visits])
  const asked = fields.message
  const messages = [{ role: 'user' as const, content: asked }]
  const prepared = useQuery(
    asked === ''
      ? undefined
      : signal => call('POST /v1/memory/prepare', { body: { messages } }, signal, user),
    [asked, user],
  )
  return page({
    title: 'What the model sees',
    description:
      'What a message of the user brings into the prompt. No model is called, and nothing is stored.',
    children: html`<form
        class="panel stack"
        onSubmit=${onSubmit(() => (message === asked ? prepared.refetch() : setFields({ message })))}
      >
        ${textAreaField({
          label: 'Message',
          value: message,
          onValue: setMessage,
          rows: 2,
          required: true,
          maxlength: 2_000,
        })}
        <div class="actions">
          ${button('Show', undefined, { kind: 'main', disabled: prepared.isLoading })}
        </div>
      </form>
      <div aria-live="polite">
        ${asked !== '' && queryView(prepared, 'the memories', preparedView)}
      </div>`,
  })
}

function preparedView(prepared: PrepareAnswer): View {
  const { context, memories_found: found, memory_tokens: tokens, confidence } = prepared
  if (context === null) {
    return emptyNote(
      'The model gets the message alone',
      'Nothing that is remembered has to do with it. Search shows what comes nearest.',
    )
  }
  return html`<div class="stack-wide">
    <dl class="figures">
      ${figure('Memories', formatCount(found), 'oldest first')}
      ${figure('Tokens', formatCount(tokens), 'of the block')}
      ${figure('Confidence', formatPercent(confidence), 'that the answer is among them')}
    </dl>
    ${section(
      'The block, word for word',
      html`<pre class="code" tabindex="0">${context}</pre>`,
      copyButton('Copy the block', context),
    )}
    ${section('Why each is there', givenCards(givenOf(prepared)))}
  </div>`
}
