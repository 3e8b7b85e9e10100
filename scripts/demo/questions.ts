/** Something a person would ask months later, in words of its own. */
export type DemoQuestion = {
  text: string
  /** What finding the answer takes. */
  takes: string
  /** The id of the turn that answers it, which must be among the first three found. */
  answerTurnId: string
  /** The turn that answered it once; what is true now must be found above it. */
  outdatedTurnId?: string
}

/** Dates in braces are written out when the question is asked. */
export const questions: readonly DemoQuestion[] = [
  {
    text: 'Which nuts make me ill?',
    takes: 'a fact, eight months old',
    answerTurnId: 'allergy',
  },
  {
    text: 'What is my current address?',
    takes: 'an update: the newest is what counts',
    answerTurnId: 'new-address',
    outdatedTurnId: 'old-address',
  },
  {
    text: 'What was I worried about in {month, 5 months ago}?',
    takes: 'a time that only the date of a memory knows',
    answerTurnId: 'cat-worry',
  },
  {
    text: 'Who gives me music lessons?',
    takes: "a person's name",
    answerTurnId: 'cello-teacher',
  },
  {
    text: "What is the name of Tinta's vet?",
    takes: 'a name, by way of another name',
    answerTurnId: 'vet',
  },
  {
    text: 'Which exercise did you suggest for my knee?',
    takes: 'what the assistant said, not the user',
    answerTurnId: 'knee-advice',
  },
  {
    text: 'Where in Slovenia did you say Priya and I should stay?',
    takes: 'a recommendation',
    answerTurnId: 'trip-advice',
  },
  {
    text: 'What was KV-70418-R again?',
    takes: 'an exact order number',
    answerTurnId: 'order',
  },
  {
    text: 'How fast was I in the marathon?',
    takes: 'a number, where a hope and a result compete',
    answerTurnId: 'marathon-result',
    outdatedTurnId: 'marathon-goal',
  },
  {
    text: 'When is the help centre launching now?',
    takes: 'a date that was moved',
    answerTurnId: 'deadline-new',
    outdatedTurnId: 'deadline-old',
  },
  {
    text: 'Where do I buy my coffee these days?',
    takes: 'an update, after a place has closed',
    answerTurnId: 'coffee-new',
    outdatedTurnId: 'coffee-old',
  },
  {
    text: 'What was the name of the hotel in Cádiz?',
    takes: 'asked in English, said in Spanish',
    answerTurnId: 'hotel',
  },
]

/** Nothing in the conversation comes near it: the right answer is none. */
export const unanswerableQuestion = 'How do I tune the carburettor of an old motorbike?'

/** What a model is about to be asked, and so what it should be reminded of. */
export const nextUserTurn =
  "Tinta's next appointment is coming up. What should I tell the vet about her kidneys, her weight and what we have changed?"
