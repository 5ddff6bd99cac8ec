"""Names of AWS that follow from others."""


def queue_arn(topic_arn: str, queue: str) -> str:
    """ARN of a batch's queue: its queues and functions are where its topic is."""
    partition, region, account = (topic_arn.split(":")[place] for place in (1, 3, 4))
    return f"arn:{partition}:sqs:{region}:{account}:{queue}"
