"""What an operator's calls answer, held against what was asked.

Responsible for refusing an answer about another client, and a token that is there or not there
against the contract: a token is answered once, so a mistake is to be seen before it is stored.
Must not: call anything. Used by `asynchronous`.
"""

from typing import TypeVar

from pydantic import Field

from gateway.contract import (
    AnswerInvalid,
    CredentialView,
    ProvisionRequest,
    ProvisionResponse,
    read_answer,
)


class RotateResponse(ProvisionResponse):
    """The client, and the token that was made for it: both are always there."""

    credential: CredentialView
    api_token: str = Field(repr=False)


AnswerT = TypeVar("AnswerT", bound=ProvisionResponse)


def read_provisioned(model: type[AnswerT], request: ProvisionRequest, response: object) -> AnswerT:
    """The answer to a request, as the model of its action.

    Raises:
        AnswerInvalid: it is about another client, or its token is missing, none, or not asked for.

    """
    answer = read_answer(model, response)
    if answer.client.client_id != request.client_id:
        raise AnswerInvalid(
            f"The answer is about the client {answer.client.client_id}, which was not asked for."
        )
    token = answer.api_token
    if token is None:
        return answer
    if request.action in ("revoke", "remove"):
        raise AnswerInvalid(f"The answer to {request.action} has a token, which was not asked for.")
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise AnswerInvalid("The token in the answer is not one word of printable ASCII.")
    if answer.credential is None:
        raise AnswerInvalid("The answer has a token without its credential.")
    return answer
